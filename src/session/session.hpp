// Session: one connection, whichever end of it we are. It joins the columns: bytes of a Stream go through a Framing to
// the Dispatcher, responses to the user's table of calls, and what is to be sent is gathered and sent once a turn.
// It does not open, accept or reconnect, knows no method, and does not destroy itself: its owner is told when it has
// ended.
// Owned by a server or client; lives on its loop's thread. The host and all it refers to outlive it.
//
// Input, in order of its bytes: message_ (kept parts of an unfinished message), backlog_ (bytes not yet looked at).
// While there is a backlog or too much output, nothing is received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "framing/framing.hpp"
#include "rpc/dispatcher.hpp"
#include "runtime/turn.hpp"
#include "transport/stream.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/message.hpp"

namespace wirecall::session {

class Session;

/// Why a session has ended.
enum class End : std::uint8_t {
  finished,    ///< in order: the peer has ended and everything before that is answered
  lost,        ///< the connection failed
  slow,        ///< the peer does not read: more output waits than Limits::hard_output
  unreadable,  ///< the peer sent what cannot be understood
  too_large,   ///< the peer sent a message over Limits::max_message_size
  too_deep,    ///< the peer sent a message over Limits::depth
};

class Owner {
 public:
  /// The session does nothing any more; destroy it once no code of it is on the stack, after the turn. `error` is an
  /// errno for End::lost, else 0.
  virtual void session_ended(Session& session, End end, int error) = 0;

 protected:
  ~Owner() = default;
};

/// Who waits for responses on a session.
class Caller {
 public:
  /// A response, well formed or not. Its spans last until this returns. False: there is no making sense of it, and the
  /// session is to end.
  [[nodiscard]] virtual bool response(const Received& message) = 0;
  /// Whether a response is being waited for: then text that cannot be understood ends the session, since it may have
  /// been the response.
  [[nodiscard]] virtual bool waiting() const = 0;

 protected:
  ~Caller() = default;
};

/// What all sessions of one loop have in common.
struct Host {
  Loop& loop;
  const Registry& registry;
  const Limits& limits;
  rpc::Workspace& workspace;
  Owner& owner;
  std::uint64_t responses_dropped = 0;  ///< nobody was waiting for them
  std::uint64_t slow_peers_cut = 0;
};

class Session final : public rpc::Outlet, private transport::StreamUser, private runtime::TurnUser {
 public:
  /// `caller` is null where no calls are made.
  Session(Host& host, std::unique_ptr<transport::Stream> stream, std::unique_ptr<framing::Framing> framing,
          Caller* caller = nullptr);
  ~Session();
  Session(Session&&) = delete;

  /// Answers new calls with -32009 from now on. What has arrived, until nothing more has for once, is
  /// still looked at, and that is `busy`.
  void drain() noexcept {
    dispatcher_.drain();
    owed_bytes_ = stream_->readable();
  }
  /// A call is being worked on, or input waits to be looked at.
  [[nodiscard]] bool busy() const noexcept {
    return dispatcher_.in_flight() != 0 || !backlog_.empty() || (owed_bytes_ != 0 && !input_ended_);
  }
  /// Asks the calls being worked on to stop.
  void stop_calls() noexcept { dispatcher_.stop_calls(); }
  /// Looks at no more input, sends what waits, tells the peer that nothing follows, and ends when the peer ends too, or
  /// is not heard of for a while.
  void finish();
  /// Bytes of output that wait here or at the kernel's door.
  [[nodiscard]] std::size_t output_bytes() const noexcept { return sending_bytes_ + out_.size(); }
  [[nodiscard]] bool has_output() const noexcept { return output_bytes() != 0; }

  // Messages of ours go the same way as replies.
  Buffer& open_message() override;
  void close_message() override;
  void discard_message() noexcept override { out_.truncate(begin_); }
  /// Hands what waits to the stream; happens by itself at the end of a turn.
  void flush();

  /// For the owner: where in its table the session is.
  std::size_t position = 0;

 private:
  class Linger;

  void received(std::span<char> bytes) override;
  void ended() override;
  void sent(Buffer buffer) override;
  void failed(int error) override;
  void turn_ended() override;
  void next_turn() override;

  std::size_t read(std::span<char> input);
  bool read_whole(std::span<char> frame, bool kept);
  void accept(const Received& message);
  void accept_response(const Received& message);
  void accept_responses(const Received& batch);
  bool keep(std::string_view part);
  bool refuse(ScanStatus status, std::string_view read);
  void refuse_size();
  void end_of_stream();
  void stop_reading(End why);
  void hold_back(std::string_view rest);
  void go_on();
  void finish_if_done();
  void end(End end, int error = 0);
  void mark();
  [[nodiscard]] bool choked() const noexcept { return output_bytes() > host_->limits.soft_output; }
  [[nodiscard]] std::string_view backlog() const noexcept { return backlog_.view().substr(backlog_at_); }

  Host* host_;
  std::unique_ptr<transport::Stream> stream_;
  std::unique_ptr<framing::Framing> framing_;
  Caller* caller_;
  rpc::Dispatcher dispatcher_;

  const std::string_view tail_;   // the framing's
  const std::size_t head_bytes_;  // the framing's
  Buffer out_;
  std::size_t begin_ = 0;          // where in out_ the message being written begins
  std::size_t sending_bytes_ = 0;  // of the send in flight
  Buffer message_;
  Buffer backlog_;
  std::size_t backlog_at_ = 0;  // the bytes before it have been looked at
  std::unique_ptr<Linger> linger_;
  std::size_t owed_bytes_ = 0;  // have arrived while draining, and are still to be received

  int unreadable_ = 0;  // messages in a row that cannot be read
  End why_stopped_ = End::unreadable;
  bool sending_ : 1 = false;
  bool marked_ : 1 = false;       // turn_ended is going to be called
  bool scheduled_ : 1 = false;    // next_turn is going to be called
  bool watching_ : 1 = false;     // turn_ended is going to be called in the next turn
  bool paused_ : 1 = false;       // nothing is received
  bool end_is_near_ : 1 = false;  // the peer's end has come, behind the backlog
  bool input_ended_ : 1 = false;  // no more input is looked at
  bool lingers_ : 1 = false;      // the peer may be sending still when all is said
  bool cut_ : 1 = false;          // too much output waits
  bool over_ : 1 = false;         // the owner has been told
};

}  // namespace wirecall::session
