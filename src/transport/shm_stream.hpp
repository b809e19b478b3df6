// ShmStream: a ByteStream through shared memory, and ShmConnection, which it is before it has a loop. Bytes go through
// the rings of a ShmSegment without a system call. Who sleeps is woken by an eventfd that its loop watches, its bell;
// that the peer has gone, however it went, is told by the end of the socket over which the two have met. As any stream
// it belongs to its user and lives on one loop.
#pragma once

#include "runtime/turn.hpp"
#include "transport/pending_connection.hpp"
#include "transport/shm_segment.hpp"

namespace wirecall::transport {

/// What one end has. All three descriptors are non-blocking.
struct ShmLink {
  ShmSegment segment;
  ShmRole role;
  runtime::Descriptor socket;
  runtime::Descriptor own_bell;   ///< the peer rings it
  runtime::Descriptor peer_bell;  ///< this end rings it
};

class ShmConnection final : public UnattachedStream {
 public:
  explicit ShmConnection(ShmLink link) noexcept : link_(std::move(link)) {}
  [[nodiscard]] std::unique_ptr<ByteStream> attach(Loop& loop) override;
  [[nodiscard]] int descriptor() const noexcept override { return link_.socket.get(); }

 private:
  ShmLink link_;
};

class ShmStream final : public ByteStream, private runtime::PolledUser {
 public:
  /// Takes what `link` has. Throws std::bad_alloc, and has taken nothing then.
  ShmStream(Loop& loop, ShmLink& link);
  ShmStream(ShmStream&&) = delete;
  ~ShmStream() override;

  void start(StreamUser& user) override;
  void send(Buffer bytes, bool prompt) override;
  void pause() override { wanted_ = false; }
  void resume() override;
  [[nodiscard]] std::size_t readable() const noexcept override { return reader_.available().value_or(0); }
  [[nodiscard]] std::size_t unsent() const noexcept override { return sends_.size() - written_; }
  void shut_down() override;
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override;
  [[nodiscard]] std::string peer_source() const override;

 private:
  // One of the two descriptors by which the loop hears of the peer.
  class Signal final : public runtime::IoUser {
   public:
    Signal(ShmStream& stream, Loop& loop, int descriptor, runtime::OperationKind kind)
        : stream_(&stream), loop_(&loop), handle_(loop.attach(descriptor, *this)), kind_(kind) {}
    Signal(Signal&&) = delete;
    ~Signal() { loop_->detach(handle_); }
    void begin();

   private:
    void completed(runtime::Completion& completion) override;

    ShmStream* stream_;
    Loop* loop_;
    runtime::Handle handle_;
    runtime::OperationKind kind_;
  };

  [[nodiscard]] bool ready() const noexcept override;
  [[nodiscard]] bool fall_asleep() noexcept override;
  void look() override;
  void rung();
  void wake_up() noexcept;
  void peer_gone(int error);
  void look_later();
  void write_some();
  void receive(std::size_t count);
  void ring_peer() const noexcept;
  [[nodiscard]] bool sending() const noexcept { return written_ != sends_.size(); }

  Loop* loop_;
  StreamUser* user_ = nullptr;
  int socket_;    // a duplicate, the loop's, and open for as long as we are
  int own_bell_;  // the same
  Signal peer_;
  Signal bell_;
  ShmSegment segment_;
  ShmWriter writer_;
  ShmReader reader_;
  runtime::Descriptor peer_bell_;
  Buffer sends_;
  std::size_t written_ = 0;  // bytes of it that are in the ring
  bool sent_ = false;        // all of it, which the user has not been told
  bool wanted_ = false;      // input is wanted
  bool polled_ = false;      // the loop is going to call `look`
  bool asleep_ = false;      // the peer rings the bell when there is something to do
  bool shuts_down_ = false;  // once all is sent
  bool shut_down_ = false;
  bool ended_ = false;  // the user has been told that the peer sends no more
  bool over_ = false;   // the user has been told of a failure
  bool gone_ = false;   // the peer has
  int error_ = 0;       // what has failed; the user is told once it has what came before
};

}  // namespace wirecall::transport
