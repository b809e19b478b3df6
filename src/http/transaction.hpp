// HttpTransaction: one request of an HttpConnection and its response, of which there is exactly one. Its dispatcher
// serves the body of a POST, as if by a connection of its own: so it is told apart, by its address, whose the answer is
// that comes late. Owned by HttpTransactions; lives on its loop's thread.
#pragma once

#include <expected>

#include "base/assert.hpp"
#include "framing/http1.hpp"
#include "http/channel.hpp"
#include "http/response.hpp"
#include "http/transactions.hpp"
#include "rpc/dispatcher.hpp"

namespace wirecall::net {

/// What Wirecall-Timeout-Ms says, or what is wrong with it.
[[nodiscard]] std::expected<std::uint32_t, std::string_view> timeout_of(const framing::HttpHead& head) noexcept;

class HttpTransaction final : public HttpSink {
 public:
  HttpTransaction(HttpChannel& channel, HttpTransactions& order);

  // The request.

  /// Takes from its head what the response depends on.
  void begin(const framing::HttpHead& head, bool draining) noexcept;
  /// In which encoding the answer is: the first that Accept names, else that of the request.
  void choose_encoding(const framing::HttpHead& head) noexcept;
  /// The request turns out to be in that encoding.
  void brings(Encoding encoding) noexcept {
    if (!as_asked_) answer_encoding_ = encoding;
  }
  [[nodiscard]] Encoding answer_encoding() const noexcept { return answer_encoding_; }
  /// What the Content-Type of the request says; JSON where it says nothing that is known.
  [[nodiscard]] Encoding content_encoding() const noexcept { return content_encoding_; }
  /// Whether Accept names text/event-stream before any encoding of messages.
  [[nodiscard]] bool wants_events() const noexcept { return wants_events_; }
  /// Whether what the head says of the calls' time, if anything, can be understood; else it has been refused.
  [[nodiscard]] bool take_timeout(const framing::HttpHead& head);
  /// Runs `act` on the dispatcher. What it answers meanwhile is noticed by who calls this; what it answers later, at
  /// the end of a turn.
  template <class Act>
  void dispatch(const Act& act) {
    if (state_ != State::answered) [[likely]]
      state_ = State::dispatching;
    act(dispatcher);
    if (state_ != State::answered) state_ = State::open;
  }

  // The response.

  [[nodiscard]] bool is_answered() const noexcept { return state_ == State::answered; }
  void respond(std::uint16_t status, std::string_view body,
               std::string_view content_type = "text/plain; charset=utf-8");
  void respond_empty(std::uint16_t status);
  /// To HEAD: 200 with the head of a response that would not end. The connection closes, as that says.
  void respond_endless_head(std::string_view content_type);
  void refuse(std::uint16_t status, std::string_view cause);
  void refuse_and_close(std::uint16_t status, std::string_view cause);
  /// The status of the dispatcher's answer.
  void set_status(std::uint16_t status) noexcept { status_ = status; }
  [[nodiscard]] bool head_only() const noexcept { return head_only_; }
  /// Bytes of it that wait for those before it.
  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_.size(); }
  void send_held() { channel_->send_held(held_); }
  /// It has been sent: another request may come.
  void reset() noexcept;

  // The dispatcher's answer.

  Buffer& open_message() override;
  void close_message() override { close_message_as({}); }
  void close_message_as(MessageForm form) override;
  void close_compact_as(MessageForm form) override { close_message_as(form); }
  void discard_message() noexcept override { out_->truncate(response_.begin); }
  void close() override { closes = true; }
  void held_changed() noexcept override { channel_->weigh(); }
  [[nodiscard]] std::optional<std::chrono::nanoseconds> received_at() noexcept override {
    return channel_->input_received_at();
  }
  [[nodiscard]] bool next_share() noexcept override { return channel_->next_slice(); }
  void interrupt() override { channel_->interrupt(); }
  [[nodiscard]] std::shared_ptr<void> hold_input() override { return channel_->hold_input(); }
  [[nodiscard]] std::string_view http_host() const noexcept override { return channel_->host_name; }

  rpc::Dispatcher dispatcher;
  std::string fields;   // of the response
  bool closes = false;  // nothing follows the response

 private:
  enum class State : std::uint8_t {
    open,         // no response yet
    dispatching,  // the same, and who dispatches will look for one
    answered      // the response has been written, though perhaps not sent
  };

  template <class Write>
  void answer(const Write& write);
  [[nodiscard]] ResponseHead head(std::uint16_t status, std::string_view content_type) const noexcept {
    return {.status = status,
            .content_type = content_type,
            .fields = fields,
            .closes = closes,
            .keeps_alive = keeps_alive_};
  }
  Buffer& begin_output();
  void written(std::size_t begin);

  HttpTransactions* order_;
  Buffer* out_ = nullptr;
  Buffer held_;  // the response, while others are due before it
  OpenResponse response_;
  std::uint16_t status_ = 200;
  State state_ = State::open;
  bool keeps_alive_ = false;  // of a request of HTTP/1.0 that asks for it
  bool head_only_ = false;
  Encoding answer_encoding_ = Encoding::json;
  Encoding content_encoding_ = Encoding::json;
  bool as_asked_ = false;      // which Accept has said
  bool wants_events_ = false;  // likewise
};

}  // namespace wirecall::net
