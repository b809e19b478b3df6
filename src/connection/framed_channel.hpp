// FramedChannel: a channel into which messages are written, each in a frame, one to one peer. Messages of ours go the
// same way as replies. It reads nothing: that is MessageConnection's, which derives from it. Lives on its loop's
// thread.
//
// Towards a peer that may read lines each message is one line. Towards one that speaks another encoding what is written
// as JSON becomes that; what has no form in it is left out, and its sender told at the end of the turn.
#pragma once

#include "connection/channel.hpp"
#include "framing/framing.hpp"
#include "message/transcoder.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::net {

class FramedChannel : public Channel, public rpc::MessageSink {
 public:
  ~FramedChannel() override;

  /// What is sent is in that encoding, as long as the peer sends no other; the framing carries it.
  void speak(Encoding encoding) noexcept { reply_form_ = MessageForm::text(encoding); }

  Buffer& open_message() override;
  void close_message() override { close_message_as(reply_form_); }
  void close_message_as(MessageForm form) override;
  void close_compact_as(MessageForm form) override;
  void discard_message() noexcept override { out_.truncate(begin_); }
  void lose_answer() noexcept override { fail_out_of_memory(); }
  [[nodiscard]] std::optional<std::chrono::nanoseconds> received_at() noexcept override { return input_received_at(); }
  [[nodiscard]] bool writable() noexcept override { return output_writable(); }
  [[nodiscard]] bool is_overfull() noexcept override { return output_is_overfull(); }
  [[nodiscard]] bool has_budget_for(std::size_t bytes) noexcept override { return output_has_budget_for(bytes); }
  [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override { return rpc::PeerCapabilities::all(); }
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override { return Channel::peer_credentials(); }
  [[nodiscard]] rpc::Share* share() noexcept override { return &own_share(); }
  [[nodiscard]] bool next_share() noexcept override { return next_slice(); }
  void interrupt() override { Channel::interrupt(); }
  [[nodiscard]] std::shared_ptr<void> hold_input() override { return Channel::hold_input(); }
  [[nodiscard]] std::string peer_source() const override { return Channel::peer_source(); }
  [[nodiscard]] std::string_view protocol() const noexcept override { return framing_->name(); }
  [[nodiscard]] std::string_view tls_version() const noexcept override { return Channel::tls_version(); }
  [[nodiscard]] std::optional<std::vector<std::string>> certificate_names() const override {
    return Channel::certificate_names();
  }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept override { return output_bytes(); }
  void held_changed() noexcept override { weigh(); }
  void count_into(rpc::ConnectionCounts* counts) noexcept override { Channel::count_into(counts); }
  [[nodiscard]] bool strict_peer() const noexcept override { return framing_->strict_peers(); }
  [[nodiscard]] bool takes_lines() const noexcept override { return lines_; }
  [[nodiscard]] Encoding encoding() const noexcept override { return reply_form_.sent; }

 protected:
  FramedChannel(Host& host, std::unique_ptr<transport::ByteStream> stream, std::unique_ptr<framing::Framing> framing);

  [[nodiscard]] bool has_head() const noexcept { return head_bytes_ != 0; }
  /// What the framing itself has to say.
  void send_as_it_is(std::string_view bytes);
  /// Messages for us about those that the encoding could not hold, as JSON. `request_turn_end` was called for them.
  [[nodiscard]] std::vector<std::string> take_news();

  // What the derived class reads by.
  const std::unique_ptr<framing::Framing> framing_;

 private:
  bool transcode_output(Encoding encoding, std::size_t at);

  // What is left to do about messages that an encoding could not hold.
  struct Unsent {
    std::vector<std::string> news;         // as JSON, for us, at the end of the turn
    std::vector<message::Broken> streams;  // calls of the peer's that are still to be answered
  };

  std::unique_ptr<Unsent> unsent_;  // made with the first message that is transcoded
  std::size_t begin_ = 0;           // where in out_ the message being written begins

  // Cached framing constants; flags packed beside them.
  const char tail_;                // its first byte
  const std::uint8_t tail_bytes_;  // 2 for more
  const std::uint8_t head_bytes_;

 protected:
  MessageForm reply_form_;  // of what is written as JSON: sent as the last message that came
  const bool binary_ : 1;

 private:
  const bool lines_ : 1;
};

}  // namespace wirecall::net
