// HttpTransaction: one request of an HttpSession and its response. Private to its sources.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "http/session.hpp"
#include "message/transcoder.hpp"
#include "rpc/dispatcher.hpp"

namespace wirecall::session {

// What is read of a body that nobody wants, so that the connection can be kept.
inline constexpr std::size_t kDiscardedBytesMax = 1024 * 1024;

// One request's answer. Its dispatcher serves the body of a POST, as a session of its own; so it is told apart, by its
// address, whose the answer is that comes late.
class HttpSession::HttpTransaction final : public rpc::MessageSink {
 public:
  explicit HttpTransaction(HttpSession& owner)
      : session(&owner),
        dispatcher(owner.host_->registry, *this, owner.host_->limits, owner.host_->loop_context, owner.load_.get()) {}

  Buffer& open_message() override {
    out_ = session->is_next(*this) ? &session->output() : &held;
    if (held.empty() && out_ == &held) held = session->host_->loop.take_buffer();
    const std::size_t begin = out_->size();
    try {
      response_ = begin_response(*out_,
                                 {.status = status,
                                  .content_type = msgpack ? kMsgpackType : kJsonType,
                                  .fields = fields,
                                  .closes = closes,
                                  .keeps_alive = keeps_alive},
                                 session->digits_);
    } catch (...) {
      out_->truncate(begin);
      throw;
    }
    return *out_;
  }
  void close_message() override { close_message_as(MessageForm::json); }
  // Which encoding the answer has, Accept may say.
  void close_message_as(MessageForm form) override {
    ++session->host_->loop_context.stats.messages_out;
    try {
      if (msgpack && form != MessageForm::msgpack) [[unlikely]]
        transcode();
      session->digits_ = static_cast<std::uint8_t>(end_response(*out_, response_, head_only));
    } catch (const std::bad_alloc&) {
      return lose_answer();
    }
    written(response_.begin);
    answered = true;
    if (!dispatching) session->request_turn_end();
  }
  void close_compact_as(MessageForm form) override { close_message_as(form); }
  void discard_message() noexcept override { out_->truncate(response_.begin); }
  void lose_answer() noexcept override { session->fail_out_of_memory(); }
  void close() override { closes = true; }
  void held_changed() noexcept override { session->weigh(); }
  [[nodiscard]] std::shared_ptr<rpc::PeerLoad> load() override {
    if (!session->load_) session->load_ = std::make_shared<rpc::PeerLoad>();
    return session->load_;
  }
  [[nodiscard]] std::optional<std::chrono::nanoseconds> received_at() noexcept override {
    return session->input_received_at();
  }

  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override { return session->peer_credentials(); }
  [[nodiscard]] rpc::Share* share() noexcept override { return &session->own_share(); }
  [[nodiscard]] bool next_share() noexcept override { return session->next_slice(); }
  void interrupt() override { session->interrupt(); }
  [[nodiscard]] std::shared_ptr<void> hold_input() override { return session->hold_input(); }
  [[nodiscard]] std::string peer_source() const override { return session->peer_source(); }
  [[nodiscard]] std::string_view http_host() const noexcept override { return session->host_name_; }

  // A response that is made at once, by `write` into the buffer it is given.
  template <class Write>
  void answer(Write write) {
    out_ = session->is_next(*this) ? &session->output() : &held;
    const std::size_t begin = out_->size();
    write(*out_);
    written(begin);
    answered = true;
  }

  HttpSession* session;
  rpc::Dispatcher dispatcher;
  Buffer held;         // the response, while others are due before it
  std::string fields;  // of the response
  std::uint16_t status = 200;
  bool closes = false;
  bool keeps_alive = false;  // of a request of HTTP/1.0 that asks for it
  bool head_only = false;
  bool dispatching = false;
  bool answered = false;
  bool msgpack = false;   // the codec of the answer
  bool as_asked = false;  // which Accept has said

 private:
  // Answers can always be said: as an error, if need be.
  void transcode() {
    message::Transcoder& transcoder = session->host_->loop_context.codecs.transcoder();
    Buffer& bytes = transcoder.scratch();
    bytes.clear();
    static_cast<void>(transcoder.to_msgpack(out_->padded().substr(response_.body_at), session->host_->limits, bytes));
    out_->truncate(response_.body_at);
    out_->append(bytes.view());
    transcoder.shrink();
  }
  void written(std::size_t begin) {
    if (out_ != &held) return session->output_grew(begin);
    session->held_bytes_ += held.size();
    session->output_grew_elsewhere(session->out_.size() + session->held_bytes_);
  }

  Buffer* out_ = nullptr;
  OpenResponse response_;
};

}  // namespace wirecall::session
