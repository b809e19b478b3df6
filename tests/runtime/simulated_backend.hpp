// SimulatedBackend: the second implementation of the backend seam, for tests: connections in memory whose other ends
// the test holds, time that passes only when nothing else can happen, and a seed that decides how runs of bytes are
// cut, in which order connections are served, and which of them wait a turn. Received bytes are lent from heap blocks
// of their exact size, so that a read beyond them is found. Everything on one thread except `wake`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/backend.hpp"

namespace wirecall::runtime {

/// The test's end of a connection.
class SimulatedPeer {
 public:
  void send(std::string_view bytes) { to_us += bytes; }
  void finish() { finished = true; }  ///< no more bytes follow those sent
  void reset() { reset_by_peer = true; }
  [[nodiscard]] std::string take() { return std::exchange(from_us, {}); }

  std::string to_us;
  std::string from_us;
  std::size_t window = std::size_t{1} << 40;  ///< bytes taken before sends have to wait
  bool finished = false;
  bool reset_by_peer = false;
  bool shut_down = false;  ///< we have ended what we send
  bool closed = false;     ///< we have closed
};

class SimulatedBackend final : public Backend {
 public:
  explicit SimulatedBackend(unsigned seed) : random_(seed) {}

  /// A descriptor that accepts connections of `connect`.
  int listen() {
    ends_.push_back(std::make_unique<End>());
    return kFirstDescriptor + static_cast<int>(ends_.size() - 1);
  }
  /// A connection to `listener`.
  std::shared_ptr<SimulatedPeer> connect(int listener) {
    auto [descriptor, peer] = pair();
    end_of(listener).arrived.push_back(descriptor);
    return peer;
  }
  /// An accepted connection: our descriptor and the test's end.
  std::pair<int, std::shared_ptr<SimulatedPeer>> pair() {
    const int descriptor = listen();
    ends_.back()->peer = std::make_shared<SimulatedPeer>();
    return {descriptor, ends_.back()->peer};
  }
  [[nodiscard]] SimulatedPeer& peer_of(int descriptor) const { return *end_of(descriptor).peer; }
  /// From now on each connection is reset with a chance of one in `chances` whenever it is served, and each listener
  /// has the same chance to find no descriptor for a new connection. 0 ends that.
  void break_one_in(unsigned chances) { break_one_in_ = chances; }
  /// The next accept fails with `error`.
  void fail_accept(int error) { accept_error_ = error; }
  /// The running code takes this time.
  void take_time(std::chrono::nanoseconds time) { now_ += time; }
  [[nodiscard]] std::size_t turns() const { return turns_; }
  /// Whether a descriptor that the backend has owned is closed.
  [[nodiscard]] bool closed(int descriptor) const { return end_of(descriptor).closed; }

  std::span<Completion> turn(std::span<Operation> submitted, std::chrono::nanoseconds until) override {
    ++turns_;
    completions_.clear();
    lent_ = std::make_shared<Lent>();
    prompt_ = false;
    for (Operation& operation : submitted) perform(operation);
    serve();
    const bool woken = woken_.exchange(false);
    // Idle time passes until `until`. Without a limit it stands still: then the test has to notice.
    const bool waits = !woken && !prompt_ && !served_ && !delayed_;
    if (waits && until != kForever) now_ = std::max(now_, until);
    return completions_;
  }
  [[nodiscard]] std::size_t readable(Handle handle) const noexcept override {
    for (const auto& end : ends_) {
      if (end->open && end->handle == handle && end->peer) return end->peer->to_us.size();
    }
    return 0;
  }
  [[nodiscard]] std::size_t unsent(Handle handle) const noexcept override {
    for (const auto& end : ends_) {
      if (end->open && end->handle == handle && end->sending) return end->unsent.size() - end->sent;
    }
    return 0;
  }
  [[nodiscard]] std::shared_ptr<void> keep_lent() override { return lent_; }
  void wake() noexcept override { woken_.store(true); }
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept override { return now_; }

 private:
  struct End {
    std::shared_ptr<SimulatedPeer> peer;  // null for a listener
    std::deque<int> arrived;
    Handle handle;
    bool open = false;
    bool closed = false;
    bool receiving = false;
    bool accepting = false;
    bool sending = false;
    bool prompt = false;
    bool polls = false;
    Readiness polled = Readiness::none;
    bool broken = false;  // and this has been reported
    Buffer unsent;
    std::size_t sent = 0;
  };

  // Code that closes a descriptor before a backend owns it calls the system: so the numbers must be invalid there.
  static constexpr int kFirstDescriptor = 1 << 24;
  [[nodiscard]] End& end_of(int descriptor) const {
    return *ends_.at(static_cast<std::size_t>(descriptor - kFirstDescriptor));
  }

  void perform(Operation& operation) {
    if (operation.kind == OperationKind::open) {
      End& end = end_of(operation.descriptor);
      end.handle = operation.handle;
      end.open = true;
      return;
    }
    const auto found =
        std::ranges::find_if(ends_, [&](const auto& end) { return end->open && end->handle == operation.handle; });
    if (found == ends_.end()) std::abort();
    End& end = **found;
    switch (operation.kind) {
      case OperationKind::open: break;
      case OperationKind::accept: end.accepting = true; break;
      case OperationKind::receive: end.receiving = true; break;
      case OperationKind::poll:
        end.polls = true;
        end.polled = operation.wanted;
        break;
      case OperationKind::cancel:
        end_multishot(end, ECANCELED);
        prompt_ = true;
        break;
      case OperationKind::send:
        end.unsent = std::move(operation.buffer);
        end.sent = 0;
        end.sending = true;
        end.prompt = operation.prompt;
        send(end);
        break;
      case OperationKind::shut_down: end.peer->shut_down = true; break;
      case OperationKind::close:
        end_multishot(end, ECANCELED);
        if (end.sending) end_send(end, ECANCELED);
        if (end.peer) end.peer->closed = true;
        end.open = false;
        end.closed = true;
        complete(OperationKind::close, end, 0);
        prompt_ = true;
        break;
    }
  }

  void serve() {
    served_ = delayed_ = false;
    std::vector<End*> order;
    for (const auto& end : ends_) {
      if (end->open) order.push_back(end.get());
    }
    std::ranges::shuffle(order, random_);
    for (End* end : order) {
      if (random_() % 4 == 0) {
        delayed_ = true;
        continue;
      }
      if (break_one_in_ != 0 && random_() % break_one_in_ == 0) {
        if (end->peer) {
          end->peer->reset_by_peer = true;
        } else if (!end->arrived.empty()) {
          accept_error_ = EMFILE;
        }
      }
      if (end->accepting) accept(*end);
      if (end->sending) send(*end);
      if (end->polls) {
        poll(*end);
      } else if (end->receiving) {
        receive(*end);
      } else if (end->peer && end->peer->reset_by_peer && !end->sending && !std::exchange(end->broken, true)) {
        served_ = true;
        complete(OperationKind::receive, *end, ECONNRESET);
      }
    }
  }

  void accept(End& end) {
    if (end.arrived.empty()) return;
    served_ = true;
    if (const int error = std::exchange(accept_error_, 0)) return end_multishot(end, error);
    Completion& completion = complete(OperationKind::accept, end, 0);
    completion.last = false;
    completion.descriptor = end.arrived.front();
    end.arrived.pop_front();
  }

  void receive(End& end) {
    if (end.peer->reset_by_peer) {
      served_ = end.broken = true;
      return end_multishot(end, ECONNRESET);
    }
    std::string& waiting = end.peer->to_us;
    if (waiting.empty()) {
      if (!end.peer->finished) return;
      served_ = true;
      return end_multishot(end, 0);
    }
    served_ = true;
    const std::size_t bytes = random_() % 2 == 0 ? waiting.size() : 1 + random_() % waiting.size();
    lent_->push_back(std::make_unique<char[]>(bytes + kPaddingBytes));
    std::memcpy(lent_->back().get(), waiting.data(), bytes);
    waiting.erase(0, bytes);
    Completion& completion = complete(OperationKind::receive, end, 0);
    completion.last = false;
    completion.bytes = {lent_->back().get(), bytes};
  }

  void poll(const End& end) {
    const SimulatedPeer& peer = *end.peer;
    const bool readable = !peer.to_us.empty() || peer.finished || peer.reset_by_peer;
    const bool writable = peer.window != 0 || peer.reset_by_peer;
    const Readiness ready =
        ((readable ? Readiness::readable : Readiness::none) | (writable ? Readiness::writable : Readiness::none)) &
        end.polled;
    if (ready == Readiness::none) return;
    served_ = true;
    Completion& completion = complete(OperationKind::poll, end, 0);
    completion.last = false;
    completion.ready = ready;
  }

  void send(End& end) {
    if (end.peer->reset_by_peer) {
      prompt_ = end.broken = true;
      return end_send(end, EPIPE);
    }
    const std::size_t left = end.unsent.size() - end.sent;
    std::size_t bytes = std::min(left, end.peer->window);
    if (bytes != 0 && random_() % 2 == 0) bytes = 1 + random_() % bytes;
    end.peer->from_us += end.unsent.view().substr(end.sent, bytes);
    end.peer->window -= bytes;
    end.sent += bytes;
    served_ = served_ || bytes != 0;
    if (end.sent != end.unsent.size()) return;
    prompt_ = prompt_ || end.prompt;
    end_send(end, 0);
  }

  void end_send(End& end, int error) {
    end.sending = false;
    complete(OperationKind::send, end, error).buffer = std::exchange(end.unsent, Buffer{});
  }
  void end_multishot(End& end, int error) {
    if (std::exchange(end.accepting, false)) complete(OperationKind::accept, end, error);
    if (std::exchange(end.receiving, false)) complete(OperationKind::receive, end, error);
  }
  Completion& complete(OperationKind kind, const End& end, int error) {
    completions_.push_back({.kind = kind, .handle = end.handle, .error = error, .bytes = {}, .buffer = {}});
    return completions_.back();
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<End>> ends_;  // by descriptor; none is used twice
  std::vector<Completion> completions_;
  using Lent = std::vector<std::unique_ptr<char[]>>;
  std::shared_ptr<Lent> lent_ = std::make_shared<Lent>();
  std::chrono::nanoseconds now_{1};
  std::size_t turns_ = 0;
  std::atomic<bool> woken_{false};
  int accept_error_ = 0;
  unsigned break_one_in_ = 0;
  bool prompt_ = false;
  bool served_ = false;
  bool delayed_ = false;
};

}  // namespace wirecall::runtime
