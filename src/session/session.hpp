// Session: a connection on which JSON-RPC messages go both ways, whichever end of it we are. It joins the columns:
// bytes of a Channel go through a Framing to the Dispatcher, and responses to the user's table of calls. It knows no
// method. Owned by a server or client; lives on its loop's thread. The host and all it refers to outlive it.
//
// Input, in order of its bytes: message_ (kept parts of an unfinished message), the channel's backlog.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "framing/framing.hpp"
#include "rpc/dispatcher.hpp"
#include "session/channel.hpp"
#include "session/connection.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::session {

/// Who waits for responses on a session.
class Caller {
 public:
  /// A notification, before any method is looked for: true when it was for the caller.
  [[nodiscard]] virtual bool notified(const Received& message) {
    static_cast<void>(message);
    return false;
  }
  /// A response, well formed or not. Its spans last until this returns. False: there is no making sense of it, and the
  /// session is to end.
  [[nodiscard]] virtual bool response(const Received& message) = 0;
  /// Whether a response is being waited for: then text that cannot be understood ends the session, since it may have
  /// been the response.
  [[nodiscard]] virtual bool waiting() const = 0;

 protected:
  ~Caller() = default;
};

class Session final : public Channel, public rpc::Outlet {
 public:
  /// `caller` is null where no calls are made.
  Session(Host& host, std::unique_ptr<transport::Stream> stream, std::unique_ptr<framing::Framing> framing,
          Caller* caller = nullptr);
  ~Session() override;

  void drain() noexcept override {
    dispatcher_.drain();
    Channel::drain();
  }
  void stop_calls() noexcept override { dispatcher_.stop_calls(); }

  // Messages of ours go the same way as replies.
  Buffer& open_message() override;
  void close_message() override;
  void discard_message() noexcept override { out_.truncate(begin_); }
  void lose_answer() noexcept override { exhaust(); }
  [[nodiscard]] std::optional<std::chrono::nanoseconds> came() noexcept override { return input_came(); }
  [[nodiscard]] bool has_room() noexcept override { return output_has_room(); }
  [[nodiscard]] bool is_overfull() noexcept override { return output_is_overfull(); }
  [[nodiscard]] bool connected() const noexcept override { return true; }
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override { return Channel::peer_credentials(); }
  void close() override { stop_reading(End::refused); }
  void authority_changed() override {
    if (!dispatcher_.is_still_known()) close();
  }
  void count_into(rpc::ConnectionCounts* counts) noexcept override { Channel::count_into(counts); }
  [[nodiscard]] bool strict_peer() const noexcept override { return framing_->strict_peers(); }
  [[nodiscard]] bool takes_lines() const noexcept override { return framing_->sends_lines(); }

 private:
  std::size_t read(std::span<char> input) override;
  void leave_message(std::vector<Buffer>& kept) override;
  void input_complete() override;
  [[nodiscard]] bool unfinished() const noexcept override { return !message_.empty() || framing_->begun(); }
  [[nodiscard]] bool is_relied_on() const noexcept override { return dispatcher_.is_relied_on(); }
  [[nodiscard]] bool is_kept() const noexcept override { return dispatcher_.is_kept(); }
  [[nodiscard]] bool ask_for_life() override { return dispatcher_.ask_for_life(); }
  [[nodiscard]] bool working() const noexcept override { return dispatcher_.in_flight() != 0; }
  void abandon() noexcept override { dispatcher_.abandon(); }
  void output_drained() override { dispatcher_.room(); }

  bool read_whole(std::span<char> frame, bool kept);
  void accept(const Received& message);
  bool accept_other(const Received& message);
  void accept_response(const Received& message);
  void accept_responses(const Received& batch);
  bool keep(std::string_view part);
  bool refuse(ScanStatus status, std::string_view read);
  void refuse_size();
  void stop_reading(End why);

  std::unique_ptr<framing::Framing> framing_;
  Caller* caller_;
  rpc::Dispatcher dispatcher_;

  const std::string_view tail_;     // the framing's
  const std::uint32_t head_bytes_;  // the framing's
  std::uint16_t unreadable_ = 0;    // messages in a row that cannot be read
  char behind_zero_ = '\0';         // what stood at ended_by_zero_
  std::size_t begin_ = 0;           // where in out_ the message being written begins
  Buffer message_;
  char* ended_by_zero_ = nullptr;  // the byte behind the message being served, where it belongs to the next one
};

}  // namespace wirecall::session
