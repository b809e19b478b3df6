// PostedMessage: the JSON-RPC message that is the body of a request, from its bytes until its answer is written, or is
// waited for. There is one at a time: nothing behind it is read meanwhile.
// Owned by an HttpConnection; lives on its loop's thread.
#pragma once

#include "connection/long_message.hpp"
#include "http/body_reader.hpp"
#include "message/transcoder.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::net {

class HttpConnection;

class PostedMessage {
 public:
  /// `kept` is where a body is that did not come at once.
  PostedMessage(HttpConnection& connection, Buffer& kept) noexcept : connection_(&connection), kept_(&kept) {}
  PostedMessage(PostedMessage&&) = delete;

  /// Serves a body where it lies; a byte can be written behind it.
  void serve(std::span<char> body);
  /// Serves what has been kept. An empty one is answered as no message.
  void serve_kept();
  /// Goes on with one that has been interrupted.
  void resume();
  /// Its handler has lost the loop. What it may still read from goes to `kept`.
  void leave(std::vector<Buffer>& kept);
  /// Answers it as too large; nothing more is read.
  void refuse_size();

 private:
  using Status = message::Transcoder::Status;
  using Unrepresentable = std::vector<message::Unrepresentable>;
  struct Read;

  void restore_zero() noexcept {
    if (zero_ != nullptr) *std::exchange(zero_, nullptr) = at_zero_;
  }
  void handle(rpc::Dispatcher& dispatcher, const Read& read);
  Scan handle_text(rpc::Dispatcher& dispatcher, std::string_view text, const Unrepresentable* unrepresentable,
                   Received& message);
  template <class Act>
  void dispatch_by(const Received& message, const Act& act);
  void dispatch(std::span<char> text);
  void dispatch_binary(std::span<char> bytes);
  void dispatch_json(std::string_view text, const Unrepresentable* unrepresentable);
  void dispatch_encoded(std::span<char> bytes, Encoding encoding, Status status,
                        const message::EnvelopeMembers& members);
  bool dispatch_natively(EncodedText encoded, const message::EnvelopeMembers& members, bool too_large);
  [[nodiscard]] Encoding encoding_of(std::string_view text) const;
  [[nodiscard]] message::Transcoder& transcoder(Encoding encoding);
  void dispatch_long_batch(EncodedText encoded);
  void dispatch_draining(std::string_view text, const Unrepresentable* unrepresentable);
  void refuse_encoded(Encoding encoding, Status status);
  void finish(bool asks);
  [[nodiscard]] bool is_long() const noexcept;
  void resume_long();

  HttpConnection* connection_;
  Buffer* kept_;
  char* zero_ = nullptr;     // behind the body that is served where it lies: the scanner wants a zero there
  char at_zero_ = '\0';      // what stood there, of the next request
  bool batch_asks_ = false;  // an answer, of the batch that is interrupted
};

}  // namespace wirecall::net
