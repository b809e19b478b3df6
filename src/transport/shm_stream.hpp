// ShmStream: a ByteStream through shared memory, and ShmConnection, which it is before it has a loop. Bytes go through
// the rings of a ShmSegment without a system call. An end that sleeps is woken by a byte on the socket by which the two
// have connected; that socket's end says that the peer has gone, however it went. Each end has an open file of its own
// for it, so the peer cannot make its reads or writes block. As any stream it belongs to its user and lives on one
// loop.
#pragma once

#include "runtime/turn.hpp"
#include "transport/pending_connection.hpp"
#include "transport/shm_segment.hpp"

namespace wirecall::transport {

/// What one end has. The socket is non-blocking.
struct ShmLink {
  ShmSegment segment;
  ShmRole role;
  runtime::Descriptor socket;
};

class ShmConnection final : public UnattachedStream {
 public:
  explicit ShmConnection(ShmLink link) noexcept : link_(std::move(link)) {}
  [[nodiscard]] std::unique_ptr<ByteStream> attach(Loop& loop) override;
  [[nodiscard]] int descriptor() const noexcept override { return link_.socket.get(); }

 private:
  ShmLink link_;
};

class ShmStream final : public ByteStream, private runtime::PolledUser, private runtime::IoUser {
 public:
  /// Takes what `link` has. Throws std::bad_alloc, and has taken nothing then.
  ShmStream(Loop& loop, ShmLink& link);
  ShmStream(ShmStream&&) = delete;
  ~ShmStream() override;

  void start(StreamUser& user) override;
  void send(Buffer bytes, bool prompt) override;
  void pause() override;
  void resume() override;
  [[nodiscard]] std::size_t readable() const noexcept override { return reader_.available().value_or(0); }
  [[nodiscard]] std::size_t unsent() const noexcept override { return sends_.size() - written_; }
  void shut_down() override;
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override;
  [[nodiscard]] std::string peer_source() const override;

 private:
  enum class Input : std::uint8_t { paused, wanted, ended };            // ended: the user has been told
  enum class Output : std::uint8_t { open, shutting_down, shut_down };  // shutting down: once all is sent

  void completed(runtime::Completion& completion) override;
  [[nodiscard]] bool ready() const noexcept override;
  [[nodiscard]] bool fall_asleep() noexcept override;
  void polled() override;
  void wake_up() noexcept;
  void peer_gone(int error);
  void poll_later();
  void write_some();
  void receive(std::size_t count);
  void wake_peer() const noexcept;
  [[nodiscard]] bool sending() const noexcept { return written_ != sends_.size(); }

  Loop* loop_;
  StreamUser* user_ = nullptr;
  int socket_;  // the loop's, and open for as long as we are
  runtime::Handle handle_;
  ShmSegment segment_;
  ShmWriter writer_;
  ShmReader reader_;
  Buffer sends_;
  std::size_t written_ = 0;  // bytes of it that are in the ring
  Input input_ = Input::paused;
  Output output_ = Output::open;
  bool sent_ = false;    // all of it, which the user has not been told
  bool polled_ = false;  // the loop is going to call `polled`
  bool asleep_ = false;  // the peer wakes us when there is something to do
  bool gone_ = false;    // the peer has
  bool failed_ = false;  // the user has been told
  int error_ = 0;        // what has failed; the user is told once it has what came before
};

}  // namespace wirecall::transport
