// See stop_signals.hpp. A signal handler is given nothing but its number, so here is state of the whole process: which
// loops to wake.
#include "session/stop_signals.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <signal.h>
#include <stdexcept>

namespace wirecall::session {
namespace {

// Servers that run at the same time in one process.
constexpr std::size_t kLoopsMax = 64;

std::atomic<unsigned> arrived{0};
std::array<std::atomic<Loop*>, kLoopsMax> loops{};
std::atomic<int> handlers_running{0};
std::atomic<unsigned> arrived_before{0};  // when the signals were taken over

std::mutex installing;  // guards what follows
unsigned installed = 0;
struct sigaction previous_interrupt;
struct sigaction previous_terminate;

extern "C" void wirecall_stop_signal(int) {
  handlers_running.fetch_add(1);
  if (arrived.fetch_add(1) - arrived_before.load() != 0) {
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGTERM, SIG_DFL);
  }
  for (const std::atomic<Loop*>& loop : loops) {
    if (Loop* awake = loop.load()) awake->wake();
  }
  handlers_running.fetch_sub(1);
}

}  // namespace

StopSignals::StopSignals(Loop& loop) : loop_(&loop), before_(arrived.load()) {
  const std::scoped_lock lock{installing};
  bool placed = false;
  for (std::atomic<Loop*>& place : loops) {
    Loop* none = nullptr;
    if (place.compare_exchange_strong(none, &loop)) {
      placed = true;
      break;
    }
  }
  if (!placed) throw std::runtime_error{"more than 64 servers run in this process: run fewer"};
  if (installed++ != 0) return;
  arrived_before.store(arrived.load());
  struct sigaction action{};
  action.sa_handler = wirecall_stop_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &previous_interrupt);
  ::sigaction(SIGTERM, &action, &previous_terminate);
}

StopSignals::~StopSignals() {
  const std::scoped_lock lock{installing};
  if (--installed == 0) {
    ::sigaction(SIGINT, &previous_interrupt, nullptr);
    ::sigaction(SIGTERM, &previous_terminate, nullptr);
  }
  for (std::atomic<Loop*>& place : loops) {
    Loop* ours = loop_;
    if (place.compare_exchange_strong(ours, nullptr)) break;
  }
  // The loop must not go while another thread's handler is waking it.
  while (handlers_running.load() != 0) {
  }
}

unsigned StopSignals::count() const noexcept { return arrived.load() - before_; }

}  // namespace wirecall::session
