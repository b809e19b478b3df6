// NodeLink: two streams of records between this node and another, by frames of the bus. The bus may lose a frame; then
// the session ends, and with it all that was under way, and both sides begin a new one: so what is received in a
// session is all that was sent in it, in order. Several records of one turn leave as one frame, and one that is longer
// than a frame may be as several.
//
// A side is `opening` until it knows that the other side knows its session; it sends no records before. Frames of other
// sessions than the present two are passed over. Where a process is replaced its sessions are the last ones of their
// links: they end once, and the other side is told by a `leave`.
// Owned by its Node. One thread. Pure. Implements docs/cluster.md "Sessions".
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "cluster/bus.hpp"
#include "cluster/link_frame.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::cluster {

class NodeLink {
 public:
  /// Who has the link. Called from `take`, `take_pong`, `flush`, `maintain` and `reset`; `wants_flush` from whatever
  /// writes as well.
  class User {
   public:
    /// Both sides have begun a session: nothing of an earlier one is under way.
    virtual void opened() = 0;
    /// The session has ended, and what was under way is over. The other side has not got what was written behind
    /// `reached`, and never will.
    virtual void ended(std::uint64_t reached) = 0;
    /// The record lasts until this returns.
    virtual void received(const Record& record) = 0;
    /// There is something to flush, once a turn.
    virtual void wants_flush() noexcept = 0;

   protected:
    ~User() = default;
  };
  struct Names {
    std::string own;      ///< of this node
    std::string subject;  ///< of the other one, until `go_on_at`
  };
  struct Bounds {
    std::size_t body_bytes_max;     ///< of one record
    std::size_t waiting_bytes_max;  ///< that the bus has not taken; beyond it the session ends
  };

  /// All referred to outlive it. Sessions are numbered from `session` on, which no other link of this node has, nor has
  /// had before.
  NodeLink(Bus& bus, Names names, std::uint64_t session, const Bounds& bounds, User& user);
  NodeLink(NodeLink&&) = delete;

  /// From now on.
  void set_bounds(const Bounds& bounds) noexcept { bounds_ = bounds; }
  [[nodiscard]] bool is_open() const noexcept { return state_ == State::open; }
  /// Bytes that wait to be sent.
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return out_.size() + bus_->waiting_bytes(); }
  /// The session, where anything was wrong with it, ends when nobody is on the way through it any more.
  void fail() noexcept;
  /// The same, and nothing is said any more.
  void fall_silent() noexcept {
    silent_ = true;
    fail();
  }

  /// No session follows on this one.
  void be_last() noexcept { last_ = true; }
  [[nodiscard]] bool is_last() const noexcept { return last_; }
  /// It was the last one.
  [[nodiscard]] bool has_ended() const noexcept { return last_ && !is_open(); }
  /// What is sent from now on goes there.
  void go_on_at(std::string subject) noexcept { names_.subject = std::move(subject); }

  // ---- records, while it is open ----

  Buffer& begin_record(const RecordHead& head);
  void end_record();
  void discard_record() noexcept;
  /// Sends what has been collected, as far as the bus takes it.
  void flush();
  /// Bytes of records of the session, those that are not sent yet among them.
  [[nodiscard]] std::uint64_t written() const noexcept {
    return sent_bytes_ + (out_.empty() ? 0 : out_.size() - head_);
  }
  /// Of these the first that the other side may have got.
  [[nodiscard]] std::uint64_t reached() const noexcept { return std::min(sent_bytes_, reached_max_); }

  // ---- frames ----

  /// A frame of the other node.
  void take(const Frame& frame);
  /// Now and then: asks for a session where there is none, and sends what the bus would not take before.
  void maintain();
  /// Asks whether the other is there, and has got what was sent; `gone` is told where it is not there. `payload` comes
  /// back by `pinged`.
  void ping(std::string_view gone, std::string_view payload) noexcept;
  /// Where something that was sent before the ping has not come, the session ends. Returns how many bytes of the
  /// session the other side has got; nothing where the pong is of another session, or the session has ended.
  std::optional<std::uint64_t> take_pong(const Frame& pong);
  /// What the ping has brought.
  [[nodiscard]] static std::string_view pinged(std::string_view pong) noexcept {
    return pong.substr(0, pong.size() - std::min(pong.size(), kPongBytes));
  }
  /// Whether the other side is known to have got all that was sent.
  [[nodiscard]] bool is_confirmed() const noexcept { return confirmed_bytes_ == sent_bytes_; }
  /// The other side is told that this one goes, and how much of its session has come; or that another process of its
  /// name takes its place.
  void leave(bool replaced) noexcept;
  /// What the other side has said so of how much it has got.
  void take_leave(const Frame& leave) noexcept;
  [[nodiscard]] static bool says_replaced(const Frame& leave) noexcept { return leave.payload == kReplaced; }
  /// Whether the frame is of the other side's present session, as far as that is known here.
  [[nodiscard]] bool is_of_session(const Frame& frame) const noexcept {
    return frame.head.from_session == peer_session_;
  }
  /// Whether a record is being received: by this thread, or by one that is off the loop.
  [[nodiscard]] bool is_reading() const noexcept { return reading_; }
  /// Ends the session, and asks for another one; where it is reading, afterwards.
  void reset();

 private:
  enum class State : std::uint8_t { opening, open };
  static constexpr int kOpensMax = 8;
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  static constexpr std::string_view kReplaced{"replaced"};  // what a leave says then
  static constexpr std::string_view kEnded{"ended"};        // and else, before bytes that have been received
  // Behind what a ping brings: bytes that had been sent before it, and bytes that have been received.
  static constexpr std::size_t kPongBytes = 2 * sizeof(std::uint64_t);

  void take_open(const Frame& frame);
  void take_data(const Frame& frame);
  void answer_ping(const Frame& frame);
  void read_records();
  void become_open(std::uint64_t peer_session);
  [[nodiscard]] bool send(FrameKind kind, std::string_view payload, std::string_view reply = {}) noexcept;
  void send_open(bool ask) noexcept;
  [[nodiscard]] bool send_pieces();
  void check();

  Bus* bus_;
  Names names_;
  Bounds bounds_;
  User* user_;
  State state_ = State::opening;
  std::uint64_t session_;
  std::uint64_t peer_session_ = 0;
  std::uint32_t sent_ = 0;
  std::uint32_t taken_ = 0;
  std::uint64_t sent_bytes_ = 0;       // of records, that the bus has taken
  std::uint64_t confirmed_bytes_ = 0;  // of these, that the other side has said to have got
  std::uint64_t reached_max_ = kAll;
  std::uint64_t taken_bytes_ = 0;
  // What became of the other side's last session, which it is told by the next open: how much of it has been taken.
  std::uint64_t former_peer_session_ = 0;
  std::uint64_t former_taken_bytes_ = 0;
  Buffer out_;            // a head and records; empty for none
  std::size_t head_ = 0;  // its bytes
  std::optional<RecordWriter> record_;
  Buffer in_;  // what is not a whole record yet
  bool reading_ = false;
  bool failed_ = false;
  bool silent_ = false;
  bool last_ = false;
  bool flush_wanted_ = false;
  int opens_left_ = kOpensMax;  // until `maintain`: where two brokers have one name, both answer
  Buffer scratch_;
};

}  // namespace wirecall::cluster
