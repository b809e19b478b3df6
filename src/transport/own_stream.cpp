// See own_stream.hpp. The user is called last in every function that calls it, so that it may destroy the stream there.
#include "transport/own_stream.hpp"

#include <cerrno>
#include <system_error>

#include "base/assert.hpp"
#include "runtime/turn.hpp"

namespace wirecall::transport {
namespace {

constexpr std::size_t kReceiveBytesMax = 64 * 1024;

class OwnStream final : public ByteStream, private runtime::PolledUser {
 public:
  // Takes the transport once nothing can fail any more. Throws std::system_error.
  OwnStream(Loop& loop, std::unique_ptr<Transport>& transport)
      : loop_(&loop),
        readable_(loop.watch(transport->read_descriptor(), Readiness::none,
                             [this](Readiness, int error) { error == 0 ? receive() : fail(error); })),
        writable_(loop.watch(transport->write_descriptor(), Readiness::none,
                             [this](Readiness, int error) { error == 0 ? write_some() : fail(error); })),
        transport_(std::move(transport)) {}
  OwnStream(OwnStream&&) = delete;
  ~OwnStream() override { loop_->forget(*this); }

  void start(StreamUser& user) override {
    user_ = &user;
    resume();
  }
  void send(Buffer bytes, bool) override {
    WIRECALL_ASSERT(user_ != nullptr && !sending() && !sent_);
    sends_ = std::move(bytes);
    written_ = 0;
    write_some();
  }
  void pause() override { want(readable_, reads_, Readiness::none); }
  void resume() override {
    if (!ended_) want(readable_, reads_, Readiness::readable);
  }
  [[nodiscard]] std::size_t readable() const noexcept override { return 0; }
  [[nodiscard]] std::size_t unsent() const noexcept override { return sends_.size() - written_; }
  void shut_down() override { transport_->end_writing(); }

 private:
  static void want(Watch& watch, Readiness& now, Readiness wanted) {
    if (now != wanted) watch.want(wanted);
    now = wanted;
  }
  [[nodiscard]] bool sending() const noexcept { return written_ != sends_.size(); }

  // Called by `send` as well, so it calls nobody.
  void write_some() {
    while (sending() && error_ == 0) {
      const std::expected<std::size_t, int> taken = transport_->write(sends_.view().substr(written_));
      if (!taken && taken.error() == EINTR) continue;
      if (!taken && (taken.error() == EAGAIN || taken.error() == EWOULDBLOCK)) break;
      if (!taken) return fail(taken.error());
      WIRECALL_ASSERT(*taken != 0 && *taken <= unsent());
      written_ += *taken;
    }
    want(writable_, writes_, sending() ? Readiness::writable : Readiness::none);
    sent_ = !sending();
    if (sent_) poll_later();
  }
  void receive() {
    Loop& loop = *loop_;
    Buffer bytes = loop.take_buffer();
    const std::expected<std::size_t, int> got = transport_->read({bytes.reserve(kReceiveBytesMax), kReceiveBytesMax});
    if (got && *got != 0) {
      WIRECALL_ASSERT(*got <= kReceiveBytesMax);
      bytes.grow(*got);
      static_cast<void>(bytes.padded());
      user_->received({bytes.data(), bytes.size()});
    } else if (got) {
      ended_ = true;
      pause();
      user_->ended();
    } else if (got.error() != EAGAIN && got.error() != EWOULDBLOCK && got.error() != EINTR) {
      fail(got.error());
    }
    loop.give_buffer(std::move(bytes));
  }
  // The user is told in the loop's next turn.
  void fail(int error) {
    if (error_ == 0) error_ = error;
    ended_ = true;
    pause();
    want(writable_, writes_, Readiness::none);
    poll_later();
  }

  void poll_later() {
    if (!std::exchange(polled_, true)) loop_->poll(*this);
  }
  [[nodiscard]] bool ready() const noexcept override { return true; }
  [[nodiscard]] bool fall_asleep() noexcept override { return false; }
  void polled() override {
    polled_ = false;
    if (std::exchange(sent_, false)) {
      if (error_ != 0) poll_later();
      written_ = 0;
      return user_->sent(std::exchange(sends_, {}));
    }
    if (error_ != 0 && !std::exchange(failed_, true)) user_->failed(error_);
  }

  Loop* loop_;
  StreamUser* user_ = nullptr;
  Watch readable_;
  Watch writable_;
  std::unique_ptr<Transport> transport_;
  Readiness reads_ = Readiness::none;
  Readiness writes_ = Readiness::none;
  Buffer sends_;
  std::size_t written_ = 0;
  bool sent_ = false;    // all of it, which the user has not been told
  bool polled_ = false;  // the loop is going to call `polled`
  bool ended_ = false;   // nothing more is received
  bool failed_ = false;  // the user has been told
  int error_ = 0;
};

}  // namespace

std::unique_ptr<ByteStream> OwnConnection::attach(Loop& loop) try {
  return std::make_unique<OwnStream>(loop, transport_);
} catch (const std::system_error&) {
  throw std::bad_alloc{};  // the process has no descriptors left
}

}  // namespace wirecall::transport
