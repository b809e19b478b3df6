// ClientHttp: a connection on which a client speaks HTTP/1.1 (RFC 9112): each message of ours is the body of a POST,
// and what comes back is given to the user, response by response. It knows no JSON and no calls. Owned by a
// ClientConnection; lives on the thread that drives the client. The host and all that it refers to outlive it.
//
// One POST is under way at a time. HTTP lets a client send the next before it has the response, but a server may close
// the connection behind any response: what had been sent meanwhile may have been served or not, and nobody could say of
// those calls that they are safe to repeat. Calls that are to run side by side have connections of their own.
//
// A response that breaks the rules ends the connection: where it ends, and the next begins, is then anybody's guess.
#pragma once

#include "connection/channel.hpp"
#include "framing/http1.hpp"
#include "http/body_reader.hpp"
#include "http/response.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

/// A response, as far as HTTP goes. Its spans last until the user returns.
struct HttpAnswer {
  std::uint16_t status;       ///< from 200 to 599
  bool encoded;               ///< the body has a Content-Encoding, so it is not what it stands for
  std::string_view location;  ///< where a redirect leads to, or the beginning of that
  std::string_view body;      ///< kPaddingBytes are readable behind it, the first of them zero; empty for none
};

/// Why a response makes no sense to the user.
struct HttpProtocolError {
  CloseReason end;
  std::string_view cause;
};

class HttpUser {
 public:
  /// The response to what was written last. An error ends the connection.
  [[nodiscard]] virtual std::optional<HttpProtocolError> answered(const HttpAnswer& answer) = 0;

 protected:
  ~HttpUser() = default;
};

/// The head of each request to `endpoint`, up to the fields that differ; the next one follows.
[[nodiscard]] std::string request_head_of(const Endpoint& endpoint, std::string_view token = {},
                                          Encoding encoding = Encoding::json);

class ClientHttp final : public Channel, public rpc::MessageSink {
 public:
  ClientHttp(Host& host, std::unique_ptr<transport::ByteStream> stream, const Endpoint& endpoint,
             const ClientOptions& options, HttpUser& user);
  ~ClientHttp() override;

  void stop_calls() noexcept override {}

  /// What the server is told of the time that the calls of the next message have left; nothing for 0.
  void set_timeout(std::chrono::milliseconds left) noexcept { timeout_ = left; }
  // One message, whose response has come before the next. What throws has changed nothing.
  Buffer& open_message() override;
  void close_message() override { close_message_as({}); }
  void close_message_as(MessageForm form) override;
  void close_compact_as(MessageForm form) override { close_message_as(form); }
  void discard_message() noexcept override { out_.truncate(request_.begin); }
  void on_turn_end() override;

  /// In which way the server has not kept to HTTP, after an end for that reason; else empty.
  [[nodiscard]] std::string failure() const override { return failure_; }

 private:
  std::size_t read(std::span<char> input) override;
  void input_complete() override;
  // The two are about handlers, of which there are none.
  void leave_message(std::vector<Buffer>&) override {}
  [[nodiscard]] bool working() const noexcept override { return false; }
  void abandon() noexcept override {}

  // Each returns how many bytes of its input it has used up.
  std::size_t read_head(std::span<char> input);
  std::size_t read_body(std::span<char> input);

  void begin_response(const framing::HttpResponseHead& head);
  void finish_kept();
  void finish_response(std::string_view body);
  bool transcode_request();
  std::string_view transcode_response(std::string_view body, Buffer& json);
  std::string_view with_refusals(std::string_view body, Buffer& all);
  void fail(CloseReason why, std::string_view cause);

  HttpUser* user_;
  const std::string request_head_;  // of all requests, up to what differs
  OpenResponse request_;            // the one being written
  std::chrono::milliseconds timeout_{0};
  std::size_t digits_ = 2;  // of the last request's length

  Buffer head_;  // the beginning of a head
  BodyReader body_;
  std::string location_;
  std::string failure_;
  std::vector<std::string> refusals_;  // responses to those of the POST's calls that could not be sent
  std::uint16_t status_ = 0;
  const Encoding encoding_;
  bool unsent_ = false;   // nothing was left to be sent: the response is made here, at the end of the turn
  bool waiting_ = false;  // a response is due
  bool closes_ = false;   // nothing follows it
  bool encoded_ = false;
};

}  // namespace wirecall::net
