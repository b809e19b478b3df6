// HttpRequestReader: finds the heads and bodies of requests in the input of an HTTP connection, within their limits of
// size and time. What a request is answered, it does not know. Owned by an HttpConnection; lives on its loop's thread.
#pragma once

#include "framing/http1.hpp"
#include "http/body_reader.hpp"
#include "http/channel.hpp"
#include "wirecall/context.hpp"

namespace wirecall::net {

class HttpRequestReader final : private Timer {
 public:
  explicit HttpRequestReader(HttpChannel& channel) noexcept;
  ~HttpRequestReader();

  /// Reads the head with which `input` begins, or goes on. `size` of what is returned is how much of `input` belongs to
  /// a head that is complete. Its spans last until `release_head`.
  framing::HttpHeadRead read_head(std::string_view input, framing::HttpHead& head) {
    if (!head_.empty()) [[unlikely]]
      return read_rest(input, head);
    const framing::HttpHeadRead read = read_http_head(input, channel_->host().limits.header_bytes, head);
    if (read.size == 0 && read.status == 0) [[unlikely]]
      keep(input);
    return read;
  }
  void release_head() noexcept {
    if (!head_.empty()) [[unlikely]]
      channel_->give_back(head_);
  }
  /// Part of a head is kept for a peer that has not said who it is: this connection may be closed for that, or others
  /// that hold more.
  void hold_unidentified();
  [[nodiscard]] BodyReader& body() noexcept { return body_; }
  /// The head has lost the loop with its handler.
  [[nodiscard]] Buffer take_head() noexcept { return std::exchange(head_, Buffer{}); }

  /// Whether a request has begun and not ended, or the time for one still runs.
  [[nodiscard]] bool has_begun() const noexcept { return pacing_ || body_.reading() || !head_.empty(); }
  /// Whether a request that somebody wants has not ended.
  [[nodiscard]] bool is_within_request() const noexcept {
    return !head_.empty() || (body_.reading() && !body_.discards());
  }
  /// A request that has begun has to come in time: its head as a whole, its body bit by bit.
  void watch_pace();
  void stop_pace() noexcept {
    if (pacing_) [[unlikely]]
      end_pace();
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept {
    return HttpChannel::held_by(head_) + HttpChannel::held_by(body_.kept());
  }

 private:
  class HeldHead;

  void expired() override;
  framing::HttpHeadRead read_rest(std::string_view input, framing::HttpHead& head);
  void keep(std::string_view input);
  void drop_head();
  void end_pace() noexcept;

  HttpChannel* channel_;
  Buffer head_;                          // the beginning of a head
  std::unique_ptr<HeldHead> held_head_;  // while head_ is kept of a peer that has not said who it is; else null
  BodyReader body_;
  bool pacing_ = false;  // the timer runs: the rest of a request has to come
};

}  // namespace wirecall::net
