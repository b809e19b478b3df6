// HttpSession: a connection on which HTTP/1.1 is spoken (docs/wire.md "HTTP"). Each request is a transaction of its
// own with a response of its own; responses go out in the order of the requests, whenever their calls are done. It
// decides what a request is answered; what HTTP looks like is framing's and http_response's, who may ask http_access's.
// Owned by a server; lives on its loop's thread. The host and settings and all that they refer to outlive it.
//
// Input, in order of its bytes: head_ (the beginning of a head) or body_ (that of a body), the channel's backlog.
// Transactions, in order of their requests: waiting_ (the first of which writes into the output, the others hold what
// they have to say), current_ (whose request is being read or dispatched).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "connection/channel.hpp"
#include "connection/long_message.hpp"
#include "framing/http1.hpp"
#include "http/access.hpp"
#include "http/response.hpp"
#include "message/transcoder.hpp"
#include "rpc/rendering.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/context.hpp"
#include "wirecall/message.hpp"

namespace wirecall::session {

/// The paths that are read by GET, but for methods (/rpc/NAME).
[[nodiscard]] std::span<const std::string_view> http_paths() noexcept;

class HttpSession final : public Channel, private Timer {
 public:
  HttpSession(Host& host, const HttpSettings& settings, std::unique_ptr<transport::ByteStream> stream);
  ~HttpSession() override;

  void drain() noexcept override;
  void stop_calls() noexcept override;
  void authority_changed(bool was_open) override;

 private:
  class HttpTransaction;
  class EventStream;
  class HeldHead;
  struct BufferedReply;
  enum class Body : std::uint8_t { none, length, chunks };

  std::size_t read(std::span<char> input) override;
  void input_complete() override;
  void resume_message() override;
  void leave_message(std::vector<Buffer>& kept) override;
  void handler_rejoined() override { request_turn_end(); }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override;
  [[nodiscard]] std::shared_ptr<rpc::Account> account() override;
  void weigh_body() noexcept;
  [[nodiscard]] bool working() const noexcept override;
  void abandon() noexcept override;
  void on_turn_end() override;
  void output_drained() override;
  [[nodiscard]] bool idle_exempt() const noexcept override { return events_ != nullptr; }
  void expired() override;

  // Reading: each returns how many bytes of its input it has used up.
  std::size_t read_head(std::span<char> input);
  std::size_t read_length(std::span<char> input);
  std::size_t read_chunks(std::span<char> input);
  void watch_pace();
  void hold_head();
  void drop_head();

  // Deciding.
  void begin_request(const framing::HttpHead& head, bool more);
  bool let_in(const framing::HttpHead& head);
  [[nodiscard]] static std::string_view bearer_token(const framing::HttpHead& head) noexcept;
  [[nodiscard]] bool authenticate(const framing::HttpHead& head);
  [[nodiscard]] bool take_timeout(const framing::HttpHead& head);
  void begin_post(const framing::HttpHead& head, bool more);
  void get(const framing::HttpHead& head, std::string_view path, std::string_view query);
  [[nodiscard]] std::unique_ptr<rpc::Rendering> openrpc(const framing::HttpHead& head) const;
  void get_method(std::string_view name, std::string_view query);
  void begin_events(const framing::HttpHead& head, std::string_view query);
  void comment_events();
  void continue_body(bool more);
  void dispatch(std::span<char> text);
  void dispatch_msgpack(std::span<char> bytes);
  void dispatch_checked(std::span<char> bytes, message::Transcoder::Status status,
                        const message::MsgpackMembers& members);
  void refuse_msgpack(message::Transcoder::Status status);
  const std::shared_ptr<LongMessage>& begin_long();
  void resume_long();
  void dispatch_long_batch(std::string_view msgpack);
  bool dispatch_as_msgpack(std::string_view msgpack, const message::MsgpackMembers& members, bool too_large);
  void finish_dispatch(const Received& message);
  void finish_dispatched(bool asks);
  void dispatch_json(std::span<char> text, const std::vector<message::Unrepresentable>* unrepresentable);
  void choose_encoding(const framing::HttpHead& head);
  void dispatch_draining(std::span<char> text, const std::vector<message::Unrepresentable>* unrepresentable);
  void dispatch_kept();
  void body_too_large();

  // Answering the current request.
  HttpTransaction& current();
  void respond(std::uint16_t status, std::string_view body,
               std::string_view content_type = "text/plain; charset=utf-8");
  void respond(std::unique_ptr<rpc::Rendering> text, std::string_view content_type);
  void respond_rendered();
  [[nodiscard]] rpc::Asker asker() const {
    return {.authority = host_->loop_context.services.authority, .principal = principal_};
  }
  void respond_empty(std::uint16_t status);
  void refuse(std::uint16_t status, std::string_view cause);
  void refuse_and_close(std::uint16_t status, std::string_view cause);
  void finish_transaction();
  void keep_silent(std::unique_ptr<HttpTransaction> transaction);
  void release_answered();
  [[nodiscard]] bool is_next(const HttpTransaction& transaction) const noexcept {
    return waiting_.empty() || waiting_.front().get() == &transaction;
  }

  const HttpSettings* settings_;
  const Principal* principal_ = nullptr;  // who has made the request that is being read
  std::shared_ptr<rpc::PeerLoad> load_;   // of all transactions; null as long as no call has waited
  std::unique_ptr<HttpTransaction> current_;
  std::vector<std::unique_ptr<HttpTransaction>> waiting_;
  std::vector<std::unique_ptr<HttpTransaction>> silent_;  // answered, while calls of theirs that say nothing go on
  std::unique_ptr<rpc::Rendering> rendering_;             // of the current response, that is interrupted; null for none
  std::string_view rendering_type_;                       // a constant
  std::unique_ptr<EventStream> events_;                   // the response that does not end: no more input is read
  std::size_t held_bytes_ = 0;                            // of responses that wait for those before them
  std::shared_ptr<LongMessage> long_message_;  // the body, that is read elsewhere, or has been; null for none
  std::string host_name_;                      // of the last POST, where it is one of ours; else empty
  Buffer head_;
  std::unique_ptr<HeldHead> held_head_;  // while head_ is kept of a peer that has not said who it is; else null
  Buffer body_;
  std::size_t at_ = 0;             // of the input of `read`: where what is being read begins
  char* ended_by_zero_ = nullptr;  // the byte behind the body being served, where it belongs to the next request
  char behind_zero_ = '\0';        // what stood there
  std::size_t left_ = 0;           // bytes of the body: that have not come, or, of chunks, that have been thrown away
  std::size_t paced_bytes_ = 0;    // of the body, received since the timer was started
  framing::ChunkedBody chunks_;
  Body reading_ = Body::none;
  std::uint8_t digits_ = 2;  // of the last response's length
  bool discards_ = false;    // the body that is being read is not wanted
  bool batch_asks_ = false;  // an answer, of the batch that is interrupted
  bool pacing_ = false;      // the timer runs: the rest of a request has to come
  bool draining_ = false;
  bool continue_due_ = false;  // 100 Continue, when the responses before it have gone
};

}  // namespace wirecall::session
