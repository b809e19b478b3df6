// See replacement.hpp.
#include "server/replacement.hpp"

#include <fcntl.h>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "server/listeners.hpp"
#include "server/server_state.hpp"

namespace wirecall::net {

void Replacement::inherit(transport::InheritedSockets sockets) noexcept {
  server_->state_->inherited = std::move(sockets);
}

const transport::InheritedSockets& Replacement::left() const noexcept { return server_->state_->inherited; }
void Replacement::close_left() noexcept { server_->state_->inherited = {}; }

Listeners Replacement::listen_together(std::string_view uri, std::size_t count, transport::InheritedSockets& sockets) {
  const Endpoint endpoint{uri};
  std::vector<transport::BoundSocket> all;
  if (Listeners::State::is_for(endpoint.kind())) {
    for (transport::ListeningSocket& socket : sockets.take(endpoint))
      all.push_back({socket.descriptor.release(), std::move(socket.endpoint), {}});
  }
  if (all.empty()) return Listeners{uri, count};
  if (endpoint.kind() == EndpointKind::tcp) all = transport::listen_together(std::move(all), count);
  return Listeners{std::make_unique<Listeners::State>(std::move(all), count)};
}

std::vector<transport::ListeningSocket> Replacement::share(const Listeners& listeners) {
  std::vector<transport::ListeningSocket> all;
  for (const transport::BoundSocket& bound : listeners.state_->all) {
    all.push_back({.descriptor = runtime::Descriptor{::fcntl(bound.descriptor, F_DUPFD_CLOEXEC, 0), "a listener"},
                   .endpoint = bound.endpoint});
  }
  return all;
}

void Replacement::own_file(Listeners& listeners) {
  for (transport::BoundSocket& bound : listeners.state_->all) {
    if (bound.endpoint.kind() == EndpointKind::unix_socket) bound.file = transport::SocketFile{bound.endpoint.path()};
  }
}

void Replacement::keep_file(Listeners& listeners) noexcept {
  for (transport::BoundSocket& bound : listeners.state_->all) bound.file.keep();
}

std::vector<transport::ListeningSocket> Replacement::share() const {
  std::vector<transport::ListeningSocket> all;
  for (const auto& loop : server_->state_->loops) {
    for (transport::ListeningSocket& socket : loop->share_sockets()) all.push_back(std::move(socket));
  }
  return all;
}

void Replacement::open_store() { server_->state_->loops.front()->open_store(); }

void Replacement::begin_to_listen() noexcept {
  for (const auto& loop : server_->state_->loops) loop->begin_to_listen();
}

void Replacement::own_files() {
  for (const auto& loop : server_->state_->loops) loop->own_files();
}

void Replacement::keep_files() noexcept {
  for (const auto& loop : server_->state_->loops) loop->keep_files();
}

void Replacement::take_over(std::string_view state, runtime::Descriptor link) {
  if (state.empty()) return;
  server_->state_->loops.front()->take_over_from(transport::PendingConnection{link.release()}, state);
}

namespace {

// How often a server is asked whether it ends, while it is waited for.
constexpr std::chrono::milliseconds kEndPoll{20};
// How long what is at work in the durable store may go on, and how often it is looked at.
constexpr std::chrono::seconds kSettle{1};
constexpr std::chrono::milliseconds kSettlePoll{5};

// False where the time is over, or the server ends, and may not look into its inbox again.
template <class T>
bool comes(const std::future<T>& result, const std::atomic<bool>& ends, std::chrono::seconds in_time) {
  const auto until = std::chrono::steady_clock::now() + in_time;
  while (result.wait_for(kEndPoll) != std::future_status::ready) {
    if (ends.load() || std::chrono::steady_clock::now() >= until) return false;
  }
  return true;
}

}  // namespace

std::vector<transport::ListeningSocket> Replacement::share(Seconds in_time) const {
  using Sockets = std::vector<transport::ListeningSocket>;
  Sockets all;
  for (const auto& loop : server_->state_->loops) {
    std::packaged_task<Sockets()> task{[&serving = *loop] { return serving.share_sockets(); }};
    std::future<Sockets> shared = task.get_future();
    static_cast<void>(loop->loop().inbox()->post_owed([task = std::move(task)]() mutable { task(); }));
    if (!comes(shared, server_->state_->stopping, in_time))
      throw std::runtime_error{"the server ends, or its loop does not answer in time"};
    for (transport::ListeningSocket& socket : shared.get()) all.push_back(std::move(socket));
  }
  return all;
}

void Replacement::settle() const {
  Server::State& state = *server_->state_;
  const auto until = std::chrono::steady_clock::now() + kSettle;
  while (std::chrono::steady_clock::now() < until) {
    std::packaged_task<bool()> task{[&first = *state.loops.front()] { return first.settle(); }};
    std::future<bool> settled = task.get_future();
    static_cast<void>(state.loops.front()->loop().inbox()->post_owed([task = std::move(task)]() mutable { task(); }));
    if (!comes(settled, state.stopping, kSettle) || settled.get()) return;
    std::this_thread::sleep_for(kSettlePoll);
  }
}

bool Replacement::hand_over(Commit commit, Seconds in_time) const {
  Server::State& state = *server_->state_;
  settle();
  // Whoever is first has the word: the loop that calls, or the caller whose time is over.
  enum class Turn : std::uint8_t { nobody, loop, caller };
  const auto turn = std::make_shared<std::atomic<Turn>>(Turn::nobody);
  const auto is_first = [turn](Turn who) {
    Turn nobody = Turn::nobody;
    return turn->compare_exchange_strong(nobody, who);
  };
  std::packaged_task<bool()> task{[&state, is_first, commit = std::move(commit)]() mutable {
    if (!is_first(Turn::loop) || state.stopping.load()) return false;
    ServingLoop& first = *state.loops.front();
    runtime::Descriptor link;
    bool committed = false;
    const std::unique_ptr<bool, std::function<void(bool*)>> staying{&committed, [&first](const bool* done) {
                                                                      if (!*done) first.stay();
                                                                    }};
    committed = commit(first.hand_over(), link);
    if (!committed) return false;
    state.shared.replaced.store(true);
    state.wake_all();
    try {
      first.replaced_by(transport::PendingConnection{link.release()});
    } catch (const std::bad_alloc&) {
      // Who provides here alone is not reached by those who call there.
    }
    return true;
  }};
  std::future<bool> committed = task.get_future();
  static_cast<void>(state.loops.front()->loop().inbox()->post_owed([task = std::move(task)]() mutable { task(); }));
  if (!comes(committed, state.stopping, in_time) && is_first(Turn::caller)) {
    static_cast<void>(
        state.loops.front()->loop().inbox()->post_owed([&first = *state.loops.front()] { first.stay(); }));
    return false;
  }
  return committed.get();
}

}  // namespace wirecall::net
