// HttpConnection: a connection on which HTTP/1.1 is spoken (docs/wire.md "HTTP"). It leads each request from its head
// to its response: who may ask, which route serves it, whether its body is wanted. Its parts do the rest: the reader
// finds heads and bodies, transactions write responses in the order of their requests, the posted message serves calls.
// Owned by a server; lives on its loop's thread. The host and settings and all that they refer to outlive it.
//
// Input, in order of its bytes: what the reader keeps of a head or body, the channel's backlog.
#pragma once

#include <functional>

#include "framing/http1.hpp"
#include "http/channel.hpp"
#include "http/posted_message.hpp"
#include "http/request_reader.hpp"
#include "http/settings.hpp"
#include "http/transaction.hpp"
#include "http/transactions.hpp"
#include "rpc/rendering.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::net {

class EventStream;

class HttpConnection final : public HttpChannel {
 public:
  /// Has the body of a request, once it has come.
  using BodyUser = std::function<void(HttpConnection&, std::string_view body)>;

  HttpConnection(Host& host, const HttpSettings& settings, std::unique_ptr<transport::ByteStream> stream);
  ~HttpConnection() override;

  void drain() noexcept override;
  void ask_to_leave() noexcept override { leaving_ = true; }
  void stop_calls() noexcept override;
  void authority_changed(bool was_open) override;
  [[nodiscard]] std::shared_ptr<rpc::Account> account() override;

  // For the handlers of routes, which give the current transaction its response, at once or by one of these.

  [[nodiscard]] const HttpSettings& settings() const noexcept { return *settings_; }
  [[nodiscard]] bool is_draining() const noexcept { return draining_; }
  /// What a request shows of who makes it: a token, or without one the connection's certificate; empty for nothing.
  [[nodiscard]] rpc::Credential credential_of(const framing::HttpHead& head) const;
  /// Whose that is; null for nobody's, and where the certificate is of another principal.
  [[nodiscard]] const Principal* find(const rpc::Credential& shown) const;
  /// Who has made the request that is being read.
  [[nodiscard]] const Principal* principal() const noexcept { return principal_; }
  [[nodiscard]] rpc::Asker asker() const {
    return {.authority = host_->loop_context.services.authority, .principal = principal_};
  }
  [[nodiscard]] HttpTransaction& current() { return transactions_.current(); }
  /// Responses to earlier requests are due.
  [[nodiscard]] bool others_wait() const noexcept { return !transactions_.none_wait(); }
  /// Responds 200 once the text is there, piece by piece; `content_type` is a constant.
  void respond(std::unique_ptr<rpc::Rendering> text, std::string_view content_type);
  /// Serves the body as a JSON-RPC message.
  void begin_message(const RoutedRequest& request);
  /// Serves that as if it were the body.
  void serve_message(std::string_view text);
  /// Has the body read, and given to `user`.
  void begin_body(const RoutedRequest& request, BodyUser user);
  /// Responds by a stream that does not end: no more input is read.
  void begin_events(std::unique_ptr<EventStream> stream);
  /// Whether `upgrade` is going to respond 101; else the request has been refused.
  [[nodiscard]] bool may_upgrade();
  /// Responds 101, and has the channel that `make` makes go on from there with the stream and all that follows.
  void upgrade(std::string_view protocol, Successor make);

  /// Responds 401: the request shows nobody, or (`shown`) nobody who is known.
  void refuse_unknown(const RoutedRequest& request, bool shown);

  /// For the posted message: the current request has been dispatched, or refused.
  void finish_transaction();

 private:
  enum class Phase : std::uint8_t {
    requests,  // each is read and answered
    events,    // one is answered for ever
    upgrading  // one has been answered by 101, which is being sent
  };
  // What few connections have; made when the first of it is needed.
  struct Rare {
    std::unique_ptr<rpc::Rendering> rendering;  // of the current response, that is interrupted; null for none
    std::string_view rendering_type;            // a constant
    BodyUser body_user;                         // of the body that is being read; null where it is a message
    std::unique_ptr<EventStream> events;        // in Phase::events
    Successor successor;                        // in Phase::upgrading
  };

  std::size_t read(std::span<char> input) override;
  void input_complete() override;
  void resume_message() override;
  void leave_message(std::vector<Buffer>& kept) override;
  void handler_rejoined() override { request_turn_end(); }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override;
  [[nodiscard]] bool working() const noexcept override;
  void abandon() noexcept override;
  void on_turn_end() override;
  void output_drained() override;
  [[nodiscard]] bool idle_exempt() const noexcept override { return phase_ == Phase::events; }
  void request_is_late() override;

  std::size_t read_head(std::span<char> input);
  std::size_t read_body(std::span<char> input);
  void begin_request(const framing::HttpHead& head, bool more);
  [[nodiscard]] bool wants_body(const RoutedRequest& request);
  void continue_body();
  void body_complete(std::span<char> in_place);
  void refuse_body_size();
  void finish_if_answered() {
    if (transactions_.has_current() && current().is_answered()) finish_transaction();
  }
  [[nodiscard]] Rare& rare();

  const HttpSettings* settings_;
  const Principal* principal_ = nullptr;
  HttpTransactions transactions_{*this};
  HttpRequestReader reader_{*this};
  PostedMessage message_{*this, reader_.body().kept()};
  std::unique_ptr<Rare> rare_;
  std::size_t at_ = 0;  // of the input of `read`: where what is being read begins
  Phase phase_ = Phase::requests;
  bool draining_ = false;
  bool leaving_ = false;       // no request follows the next one
  bool continue_due_ = false;  // 100 Continue, when the responses before it have gone
};

}  // namespace wirecall::net
