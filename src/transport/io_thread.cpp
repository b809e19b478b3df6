// See io_thread.hpp. A connection has two halves: RemoteStream, which lives on the owner's loop and goes when its user
// likes, and Connection, which has the socket and goes when both have ended it. Over 500 lines, since the two halves of
// one conversation are read side by side.
#include "transport/io_thread.hpp"

#include <algorithm>
#include <sys/ioctl.h>
#include <thread>

#include "base/assert.hpp"
#include "base/reserve_extra.hpp"
#include "runtime/turn.hpp"
#include "transport/setup.hpp"
#include "transport/socket.hpp"

namespace wirecall::transport {

using runtime::IntrusiveRecord;
using runtime::Record;
using std::chrono::nanoseconds;

namespace {

// What is told of a connection.
enum To : std::uint8_t {
  // To its socket.
  kOpen,
  kPause,
  kResume,
  kSend,
  kSendAndTell,  // as soon as all of it has been taken
  kShutDown,
  kCount,  // what has been taken of a send
  kClose,
  kDrained,  // the owner has looked at enough of what crossed: held connections receive again
  // To its stream.
  kReceived,
  kEnded,
  kSent,
  kFailed,
  kClosed,
};

// What one who has closed has said before is still sent, but its peer must take it within this time.
constexpr std::chrono::seconds kLastBytesTime{10};
// What has been taken is told at last when there is so much of it.
constexpr std::size_t kUntoldMax = 256;
// How long a loop waits that has no memory for its turn.
constexpr std::chrono::milliseconds kMemoryPause{1};

}  // namespace

// ---- where the socket is ----

class IoThread::Connection final : public StreamUser, public runtime::TurnUser, private Timer {
 public:
  explicit Connection(IoThread& io) : io_(&io) {
    closing.about = failing_.about = this;
    failing_.kind = kFailed;
  }
  Connection(Connection&&) = delete;

  void received(std::span<char> bytes) override;
  void ended() override;
  void sent(Buffer buffer) override;
  void failed(int error) override { fail(error); }
  void turn_ended() override;
  void next_turn() override {}

  // What the owner says.
  void perform(Record& record);
  void end() noexcept;
  /// Without what is left to send.
  void close() noexcept;
  /// The owner takes its input again. Returns the next held connection.
  Connection* resume_held() noexcept;

  // Both sides'.
  PendingConnection pending;  // until the loop has it
  std::atomic<std::uint64_t> arrived{0};
  std::atomic<std::size_t> unsent{0};
  int error = 0;

 private:
  void expired() override { close(); }
  template <class Act>
  bool tell(const Act& act) noexcept;
  void fail(int why) noexcept;
  void mark();
  void send();
  void shut_down_if_sent();
  void hold();

  enum class State : std::uint8_t {
    open,
    failed,   // which the owner is told
    closing,  // the owner has closed it; its last bytes are being sent
    closed,
  };

  IoThread* io_;
  State state_ = State::open;
  std::unique_ptr<ByteStream> socket_;
  Buffer waiting_;              // for the end of the turn, and for the send in flight
  std::size_t sending_ = 0;     // bytes of that
  bool tells_ = false;          // at once when they have been taken
  bool waiting_tells_ = false;  // the same for what waits
  bool marked_ = false;
  bool shuts_down_ = false;  // when all has been taken
  bool wanted_ = true;       // the owner's stream wants input
  bool held_ = false;        // it waits for the owner's loop
  Connection* next_held_ = nullptr;
  IntrusiveRecord failing_;

 public:
  // The owner's side's, away from what the other side writes to all the time; `sends_rest` goes with the record.
  alignas(64) RemoteStream* stream = nullptr;
  std::size_t position = 0;
  IntrusiveRecord closing;
  bool sends_rest = false;
};

// Whatever has not the memory that it needs ends the connection.
template <class Act>
bool IoThread::Connection::tell(const Act& act) noexcept {
  try {
    act();
    return true;
  } catch (const std::bad_alloc&) {
    fail(ENOMEM);
    return false;
  }
}

void IoThread::Connection::received(std::span<char> bytes) {
  if (state_ != State::open) return;
  arrived.store(arrived.load(std::memory_order_relaxed) + bytes.size(), std::memory_order_relaxed);
  const bool told = tell([&] {
    io_->tell_taken();
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), runtime::SpscChannel::kBytesMax))) {
      io_->to_owner_.add(kReceived, this, bytes.first(std::min(bytes.size(), runtime::SpscChannel::kBytesMax)));
    }
  });
  if (told && io_->to_owner_.bytes_ahead() > kBytesAhead) hold();
}

void IoThread::Connection::ended() {
  if (state_ != State::open) return;
  tell([&] {
    io_->tell_taken();
    io_->to_owner_.add(kEnded, this);
  });
}

void IoThread::Connection::sent(Buffer buffer) {
  const std::size_t bytes = std::exchange(sending_, 0);
  unsent.store(waiting_.size(), std::memory_order_relaxed);
  if (state_ == State::closing) return waiting_.empty() ? close() : send();
  if (!waiting_.empty()) mark();
  tell([&] {
    reserve_extra(io_->taken_, 1);
    io_->taken_.push_back({.connection = this, .buffer = std::move(buffer), .bytes = bytes});
    if (tells_ || io_->taken_.size() >= kUntoldMax) io_->tell_taken();
    if (shuts_down_) shut_down_if_sent();
  });
}

void IoThread::Connection::shut_down_if_sent() {
  if (sending_ != 0 || !waiting_.empty()) return;
  shuts_down_ = false;
  socket_->shut_down();
}

void IoThread::Connection::mark() {
  if (!std::exchange(marked_, true)) io_->loop_.at_turn_end(*this);
}

// What the owner has said in a turn leaves in one send.
void IoThread::Connection::turn_ended() {
  marked_ = false;
  if (sending_ == 0 && !waiting_.empty() && state_ != State::failed) send();
}

void IoThread::Connection::perform(Record& record) {
  if (state_ != State::open) return;
  tell([&] {
    switch (record.kind) {
      case kOpen: socket_ = pending.attach(io_->loop_); return socket_->start(*this);
      case kPause:
        wanted_ = false;
        if (!held_) socket_->pause();
        return;
      case kResume:
        wanted_ = true;
        if (!held_) socket_->resume();
        return;
      case kSend:
      case kSendAndTell:
        unsent.store(unsent.load(std::memory_order_relaxed) + record.buffer.size(), std::memory_order_relaxed);
        waiting_tells_ = waiting_tells_ || record.kind == kSendAndTell;
        if (waiting_.empty()) {
          waiting_ = std::move(record.buffer);
        } else {
          waiting_.append(record.buffer.view());
        }
        return mark();
      case kShutDown: shuts_down_ = waiting_tells_ = true; return shut_down_if_sent();
      case kCount: return unsent.store(socket_->unsent() + waiting_.size(), std::memory_order_relaxed);
      default: return;
    }
  });
}

IoThread::Connection* IoThread::Connection::resume_held() noexcept {
  held_ = false;
  Connection* const next = std::exchange(next_held_, nullptr);
  if (wanted_ && state_ != State::failed) tell([&] { socket_->resume(); });
  return next;
}

void IoThread::Connection::end() noexcept {
  WIRECALL_ASSERT(state_ == State::open || state_ == State::failed);
  const bool failed = std::exchange(state_, State::closing) == State::failed;
  if (!sends_rest || failed || (sending_ == 0 && waiting_.empty())) return close();
  try {
    reserve_extra(io_->ending_, 1);
    io_->loop_.start(*this, kLastBytesTime);
    io_->ending_.push_back(this);
    if (sending_ == 0) send();
  } catch (const std::bad_alloc&) {
    close();
  }
}

void IoThread::Connection::fail(int why) noexcept {
  if (state_ == State::closing) return close();
  if (state_ != State::open) return;
  state_ = State::failed;
  error = why;
  io_->to_owner_.add(failing_);
}

void IoThread::Connection::send() {
  tells_ = std::exchange(waiting_tells_, false);
  sending_ = waiting_.size();
  // Nobody is told of the last bytes, but they end the connection.
  tell([&] { socket_->send(std::exchange(waiting_, Buffer{}), tells_ || state_ == State::closing); });
}

void IoThread::Connection::hold() {
  if (held_) return;
  held_ = true;
  next_held_ = std::exchange(io_->held_, this);
  if (wanted_) tell([&] { socket_->pause(); });
  io_->starved_.store(true, std::memory_order_relaxed);
}

void IoThread::Connection::close() noexcept {
  if (std::exchange(state_, State::closed) == State::closed) return;
  io_->loop_.stop(*this);
  if (marked_) io_->loop_.forget(*this);
  if (held_) {
    Connection** at = &io_->held_;
    for (; *at != this; at = &(*at)->next_held_) WIRECALL_ASSERT(*at != nullptr);
    *at = next_held_;
  }
  std::erase(io_->ending_, this);
  std::erase_if(io_->taken_, [this](const Taken& taken) { return taken.connection == this; });
  socket_.reset();
  closing.kind = kClosed;
  io_->to_owner_.add(closing);
}

// What the kernel has taken is told before what comes next.
void IoThread::tell_taken() {
  while (!taken_.empty()) {
    Taken& taken = taken_.back();
    Record& record = to_owner_.add(kSent, taken.connection);
    record.at = static_cast<std::uint32_t>(taken.bytes);
    record.buffer = std::move(taken.buffer);
    taken_.pop_back();
  }
}

void IoThread::SocketSide::arrived(Record& record, std::span<char>) {
  static_cast<Connection*>(record.about)->perform(record);
}

void IoThread::SocketSide::arrived(IntrusiveRecord& record) noexcept {
  if (record.kind == kClose) return static_cast<Connection*>(record.about)->end();
  io_->drained_told_.store(false, std::memory_order_release);
  for (Connection* held = std::exchange(io_->held_, nullptr); held != nullptr;) held = held->resume_held();
}

// ---- on the owner's loop ----

class IoThread::RemoteStream final : public ByteStream, public runtime::TurnUser {
 public:
  RemoteStream(IoThread& io, Connection& connection, int fd) : io_(&io), connection_(&connection), fd_(fd) {
    io.owner_->admit(2);  // itself and its user
  }
  RemoteStream(RemoteStream&&) = delete;
  ~RemoteStream() override {
    io_->owner_->release(2);
    if (connection_->stream == nullptr) return;  // it has not been opened
    if (scheduled_) io_->owner_->forget(*this);
    std::ranges::replace(io_->sent_, this, nullptr);
    connection_->stream = nullptr;
    connection_->sends_rest = !waits_;
    connection_->closing.kind = kClose;
    io_->to_sockets_.add(connection_->closing);
  }

  void start(StreamUser& user) override {
    user_ = &user;
    resume();
  }
  void send(Buffer bytes, bool prompt) override {
    const std::size_t size = bytes.size();
    waits_ = prompt || under_way_ + size > kSentAtOnce;
    if (!waits_) reserve_extra(io_->sent_, 1);
    io_->to_sockets_.add(waits_ ? kSendAndTell : kSend, connection_).buffer = std::move(bytes);
    under_way_ += size;
    if (!waits_) io_->sent_.push_back(this);
  }
  void pause() override {
    if (!wanted_) return;
    io_->to_sockets_.add(kPause, connection_);
    wanted_ = false;
  }
  void resume() override {
    if (wanted_) return;
    io_->to_sockets_.add(kResume, connection_);
    wanted_ = true;
    if (late_ || late_end_) schedule();
  }
  [[nodiscard]] std::size_t readable() const noexcept override {
    int bytes = 0;
    if (::ioctl(fd_, FIONREAD, &bytes) != 0 || bytes < 0) bytes = 0;
    const std::uint64_t arrived = connection_->arrived.load(std::memory_order_relaxed);
    return static_cast<std::size_t>(bytes) + static_cast<std::size_t>(arrived - received_);
  }
  /// What was so when it was asked last; each asking sees to it that the next one is told what is so now.
  [[nodiscard]] std::size_t unsent() const noexcept override {
    if (under_way_ == 0) return 0;
    try {
      io_->to_sockets_.add(kCount, connection_);
    } catch (const std::bad_alloc&) {
    }
    return connection_->unsent.load(std::memory_order_relaxed);
  }
  void shut_down() override { io_->to_sockets_.add(kShutDown, connection_); }
  void watch_peer(nanoseconds time) noexcept override { transport::watch_peer(fd_, time); }
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override {
    return transport::peer_credentials(fd_);
  }
  [[nodiscard]] std::string peer_source() const override { return transport::peer_source(fd_); }

  // What the socket's side says.
  void received(std::span<char> bytes) {
    WIRECALL_ASSERT(user_ != nullptr);
    if (failed_) return;
    if (wanted_ && !late_) {
      received_ += bytes.size();
      return user_->received(bytes);
    }
    // It has crossed while the stream was being paused.
    try {
      if (!late_) late_ = std::make_shared<Buffer>();
      late_->append({bytes.data(), bytes.size()});
    } catch (const std::bad_alloc&) {
      failed(ENOMEM);
    }
  }
  void ended() {
    if (failed_) return;
    if (!wanted_ || late_) {
      late_end_ = true;
      return;
    }
    wanted_ = false;
    user_->ended();
  }
  void sent(std::size_t bytes) {
    WIRECALL_ASSERT(bytes <= under_way_);
    under_way_ -= bytes;
    if (waits_ && under_way_ == 0) told();
  }
  void told() {
    waits_ = false;
    if (!failed_) user_->sent({});
  }
  void failed(int error) {
    if (!std::exchange(failed_, true)) user_->failed(error);
  }
  void turn_ended() override {}
  void next_turn() override {
    scheduled_ = false;
    if (failed_) return;
    if (wanted_ && late_) {
      io_->lent_ = std::move(late_);
      static_cast<void>(io_->lent_->padded());
      received_ += io_->lent_->size();
      if (late_end_) schedule();
      return user_->received({io_->lent_->data(), io_->lent_->size()});
    }
    if (wanted_ && std::exchange(late_end_, false)) ended();
  }

 private:
  void schedule() {
    if (!std::exchange(scheduled_, true)) io_->owner_->at_next_turn(*this);
  }

  IoThread* io_;
  Connection* connection_;
  int fd_;  // the connection's, and open for as long as we are; -1 where it has none
  StreamUser* user_ = nullptr;
  std::size_t under_way_ = 0;     // bytes sent of which has not been told that they are taken
  std::uint64_t received_ = 0;    // bytes that the user has been given
  std::shared_ptr<Buffer> late_;  // what has come since the stream was paused
  bool late_end_ = false;         // and then nothing more comes
  bool wanted_ = true;            // input is
  bool waits_ = false;            // the user is told when all is taken
  bool failed_ = false;
  bool scheduled_ = false;
};

void IoThread::OwnerSide::arrived(Record& record, std::span<char> bytes) {
  RemoteStream* const stream = static_cast<Connection*>(record.about)->stream;
  if (record.kind == kSent) {
    io_->owner_->give_buffer(std::move(record.buffer));
    if (stream != nullptr) stream->sent(record.at);
    return;
  }
  if (record.kind == kReceived && io_->starved_.load(std::memory_order_relaxed) &&
      io_->to_owner_.bytes_ahead() <= kBytesAhead / 2 &&
      !io_->drained_told_.exchange(true, std::memory_order_acquire)) {
    io_->starved_.store(false, std::memory_order_relaxed);
    io_->to_sockets_.add(io_->drained_);
  }
  if (stream == nullptr) return;
  if (record.kind == kReceived) return stream->received(bytes);
  stream->ended();
}

void IoThread::OwnerSide::arrived(IntrusiveRecord& record) noexcept {
  Connection& connection = *static_cast<Connection*>(record.about);
  if (record.kind == kFailed) {
    if (connection.stream != nullptr) connection.stream->failed(connection.error);
    return;
  }
  const std::size_t position = connection.position;
  WIRECALL_ASSERT(record.kind == kClosed && connection.stream == nullptr);
  WIRECALL_ASSERT(position < io_->connections_.size() && io_->connections_[position].get() == &connection);
  io_->connections_[position].swap(io_->connections_.back());
  io_->connections_[position]->position = position;
  io_->connections_.pop_back();
}

bool IoThread::OwnerSide::drain_one() {
  io_->lent_.reset();
  while (io_->sent_at_ != io_->sent_.size()) {
    if (RemoteStream* const stream = io_->sent_[io_->sent_at_++]; stream != nullptr) {
      stream->told();
      return true;
    }
  }
  io_->sent_.clear();
  io_->sent_at_ = 0;
  return false;
}

std::shared_ptr<void> IoThread::OwnerSide::lent() const noexcept { return io_->lent_; }

// ---- the thread ----

IoThread::IoThread(Loop& owner, std::unique_ptr<runtime::Backend> backend) : owner_(&owner), loop_(std::move(backend)) {
  drained_.kind = kDrained;
  owner.join(to_owner_, to_sockets_, loop_);
  loop_.join(to_sockets_, to_owner_, owner);
}

IoThread::~IoThread() {
  for (const auto& connection : connections_) WIRECALL_ASSERT(connection->stream == nullptr);  // they go before
  owner_->leave(loop_);
}

std::unique_ptr<ByteStream> IoThread::open(PendingConnection pending) {
  reserve_extra(connections_, 1);
  auto connection = std::make_unique<Connection>(*this);
  auto stream = std::make_unique<RemoteStream>(*this, *connection, pending.descriptor());
  to_sockets_.add(kOpen, connection.get());
  connection->pending = std::move(pending);
  connection->stream = stream.get();
  connection->position = connections_.size();
  connections_.push_back(std::move(connection));
  return stream;
}

void IoThread::run(const std::function<bool()>& stop) {
  while (!stop()) turn(nanoseconds{-1});
  // What the owner has said last is looked at in the first turn, and done in the second.
  turn(nanoseconds{0});
  turn(nanoseconds{0});
  const nanoseconds until = loop_.now() + kLastWords;
  for (nanoseconds now{0}; !ending_.empty() && (now = loop_.now()) < until;) turn(until - now);
  while (!ending_.empty()) ending_.back()->close();
  turn(nanoseconds{0});  // which closes the descriptors
}

void IoThread::turn(nanoseconds wait_max) {
  try {
    loop_.turn(wait_max);
  } catch (const std::bad_alloc&) {
    // Nothing of the turn is lost, and the next one goes on with it.
    std::this_thread::sleep_for(kMemoryPause);
  }
}

}  // namespace wirecall::transport
