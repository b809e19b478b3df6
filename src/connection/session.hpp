// Session: a connection on which JSON-RPC messages go both ways, whichever end of it we are. It joins the columns:
// bytes of a Channel go through a Framing to the Dispatcher, and responses to the user's table of calls. It knows no
// method. Owned by a server or client; lives on its loop's thread. The host and all it refers to outlive it.
//
// Where the framing carries any bytes, messages may be MessagePack. Of those for methods of this process, and of
// answers that somebody waits for, params and result stay that, and so do the results that are sent; all others become
// JSON here before anybody looks at them, and what is sent then becomes MessagePack.
//
// Input, in order of its bytes: message_ (kept parts of an unfinished message), the channel's backlog.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "connection/channel.hpp"
#include "connection/connection.hpp"
#include "connection/long_message.hpp"
#include "framing/framing.hpp"
#include "message/explain.hpp"
#include "message/transcoder.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::session {

/// Who waits for responses on a session.
class ResponseHandler {
 public:
  /// A notification, before any method is looked for: true when it was for the caller.
  [[nodiscard]] virtual bool notified(const Received& message) {
    static_cast<void>(message);
    return false;
  }
  /// A response, well formed or not. Its spans last until this returns. False: there is no making sense of it, and the
  /// session is to end.
  [[nodiscard]] virtual bool response(const Received& message) = 0;
  /// Of one in MessagePack: whether its result is wanted as it is, not as JSON. `message` has no result yet.
  [[nodiscard]] virtual bool takes_msgpack(const Received& message) {
    static_cast<void>(message);
    return false;
  }
  /// Whether a response is being waited for: then text that cannot be understood ends the session, since it may have
  /// been the response.
  [[nodiscard]] virtual bool waiting() const = 0;

 protected:
  ~ResponseHandler() = default;
};

class Session final : public Channel, public rpc::MessageSink {
 public:
  /// `caller` is null where no calls are made.
  Session(Host& host, std::unique_ptr<transport::ByteStream> stream, std::unique_ptr<framing::Framing> framing,
          ResponseHandler* caller = nullptr);
  ~Session() override;

  /// What is sent is MessagePack, as long as the peer sends that; the framing carries it.
  void speak_msgpack() noexcept { msgpack_ = true; }
  /// What is held of memory for a message that has not ended.
  [[nodiscard]] std::size_t unfinished_bytes() const noexcept { return held_by(message_); }

  void drain() noexcept override {
    dispatcher_.drain();
    Channel::drain();
  }
  void stop_calls() noexcept override { dispatcher_.stop_calls(); }

  // Messages of ours go the same way as replies.
  Buffer& open_message() override;
  void close_message() override { close_message_as(msgpack_ ? MessageForm::transcoded : MessageForm::json); }
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
  [[nodiscard]] std::size_t waiting_bytes() const noexcept override { return output_bytes(); }
  void held_changed() noexcept override { weigh(); }
  void close() override;
  void authority_changed(bool was_open) override {
    if (dispatcher_.is_still_known(was_open)) return;
    dispatcher_.end_if_revoked();
    close();
  }
  void count_into(rpc::ConnectionCounts* counts) noexcept override { Channel::count_into(counts); }
  [[nodiscard]] bool strict_peer() const noexcept override { return framing_->strict_peers(); }
  [[nodiscard]] bool takes_lines() const noexcept override { return lines_; }
  [[nodiscard]] bool speaks_msgpack() const noexcept override { return msgpack_; }

 private:
  std::size_t read(std::span<char> input) override;
  std::size_t read_messages(std::span<char> input);
  void resume_message() override;
  bool leave_rest() override { return dispatcher_.leave_batch(); }
  void leave_message(std::vector<Buffer>& kept) override;
  void input_complete() override;
  [[nodiscard]] std::size_t kept_bytes() const noexcept override {
    return held_by(message_) + dispatcher_.held_bytes() + (reads_long() ? rare_->long_message->bytes() : 0);
  }
  [[nodiscard]] bool reads_long() const noexcept { return rare_ && rare_->long_message; }
  [[nodiscard]] std::shared_ptr<rpc::Account> account() override {
    return caller_ == nullptr ? dispatcher_.account() : nullptr;
  }
  [[nodiscard]] bool unfinished() const noexcept override { return !message_.empty() || framing_->begun(); }
  [[nodiscard]] bool is_provider() const noexcept override { return dispatcher_.is_provider(); }
  [[nodiscard]] bool idle_exempt() const noexcept override { return dispatcher_.idle_exempt(); }
  [[nodiscard]] bool send_keepalive() override { return dispatcher_.send_keepalive(); }
  [[nodiscard]] bool working() const noexcept override { return dispatcher_.in_flight() != 0; }
  void abandon() noexcept override { dispatcher_.abandon(); }
  void output_drained() override { dispatcher_.on_writable(); }

  void on_turn_end() override;

  bool read_whole(std::span<char> frame, bool kept);
  bool read_msgpack(std::span<char> frame, bool kept);
  bool read_checked(std::span<char> frame, bool kept, message::Transcoder::Status status,
                    const message::MsgpackMembers& members);
  const std::shared_ptr<LongMessage>& begin_long();
  void resume_long();
  bool read_as_msgpack(std::span<char> frame, bool kept, const message::MsgpackMembers& members, bool too_large);
  bool read_long_batch(std::string_view msgpack, bool kept);
  bool read_transcoded(std::span<char> frame, bool kept, message::Transcoder::Status status);
  bool takes_msgpack(const Received& message);
  bool read_json(std::span<char> frame, bool kept, const std::vector<message::Unrepresentable>& unrepresentable);
  bool refuse_transcoded(message::Transcoder::Status status);
  void accept(const Received& message, std::span<const Received> elements,
              std::span<const message::Unrepresentable> unrepresentable, bool transcoded);
  bool accept_other(const Received& message);
  [[nodiscard]] bool awaits_responses() const noexcept { return caller_ != nullptr || dispatcher_.awaits_responses(); }
  void accept_response(const Received& message);
  void accept_responses(const Received& batch, std::string_view msgpack);
  void batched_response(const Received& response, std::string_view msgpack, std::string_view element) override;
  void take_result(std::string_view msgpack, Received& response, Buffer& json);
  void accept_msgpack_response(std::string_view msgpack, std::string_view text, Received& response, Buffer& json);
  bool keep(std::string_view part);
  [[nodiscard]] bool is_too_large(std::size_t bytes) const noexcept {
    return bytes > host_->limits.max_message_size ||
           (bytes > rpc::kUnidentifiedBytesMax && caller_ == nullptr && dispatcher_.is_unidentified());
  }
  bool refuse(ScanStatus status, std::string_view read, const message::Unreadable& where);
  void refuse_size();
  [[nodiscard]] message::Unreadable unreadable(std::string_view text, std::size_t offset) const;
  void stop_reading(CloseReason why);
  bool transcode_output(std::size_t at);
  void watch_head();

  std::unique_ptr<framing::Framing> framing_;
  ResponseHandler* caller_;
  rpc::Dispatcher dispatcher_;

  // What the framing says of itself, and beside it what fits there: a connection is small.
  const char* const tail_;
  const std::uint32_t tail_bytes_;
  const std::uint8_t head_bytes_;
  std::uint8_t unreadable_ = 0;  // messages in a row that cannot be read
  char behind_zero_ = '\0';      // what stood at ended_by_zero_
  const bool binary_ : 1;
  const bool lines_ : 1;
  bool msgpack_ : 1 = false;  // the codec of the last message, and of what is sent
  std::size_t begin_ = 0;     // where in out_ the message being written begins
  Buffer message_;
  char* ended_by_zero_ = nullptr;  // the byte behind the message being served, where it belongs to the next one

  // What is left to do about messages that MessagePack could not hold.
  struct Unsent {
    std::vector<std::string> news;         // as JSON, for us, at the end of the turn
    std::vector<message::Broken> streams;  // calls of the peer's that are still to be answered
  };
  // What few connections have; made when the first is needed.
  class HeadTimer;
  struct Rare {
    std::unique_ptr<Unsent> unsent;             // made with the first message that is sent in MessagePack
    std::unique_ptr<HeadTimer> head_timer;      // runs while a header has begun and not ended
    std::shared_ptr<LongMessage> long_message;  // that is read elsewhere, or has been
  };
  [[nodiscard]] Rare& rare();
  std::unique_ptr<Rare> rare_;
};

}  // namespace wirecall::session
