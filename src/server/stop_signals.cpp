// See stop_signals.hpp. A signal handler is given nothing but its number, so here is state of the whole process: which
// loops to wake.
#include "server/stop_signals.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <signal.h>
#include <stdexcept>
#include <time.h>

namespace wirecall::net {
namespace {

// Servers that run at the same time in one process.
constexpr std::size_t kLoopsMax = 64;
// What a server that ends at once is given for it.
constexpr timespec kLastGrace{.tv_sec = 1, .tv_nsec = 0};

std::atomic<unsigned> arrived{0};
std::array<std::atomic<Loop*>, kLoopsMax> loops{};
std::atomic<int> handlers_running{0};
std::atomic<unsigned> arrived_before{0};  // when the signals were taken over
timer_t last;                             // sends the signal that ends the process
std::atomic<bool> has_last{false};        // the system may have none for us

std::mutex installing;  // guards what follows
unsigned installed = 0;
struct sigaction previous_interrupt;
struct sigaction previous_terminate;

extern "C" void wirecall_stop_signal(int) {
  handlers_running.fetch_add(1);
  if (arrived.fetch_add(1) - arrived_before.load() != 0) {
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGTERM, SIG_DFL);
    const itimerspec grace{.it_interval = {}, .it_value = kLastGrace};
    if (has_last.load()) ::timer_settime(last, 0, &grace, nullptr);
  }
  for (const std::atomic<Loop*>& loop : loops) {
    if (Loop* awake = loop.load()) awake->wake();
  }
  handlers_running.fetch_sub(1);
}

bool replace_one(Loop* old, Loop* by) noexcept {
  return std::ranges::any_of(loops, [&](std::atomic<Loop*>& slot) {
    Loop* expected = old;
    return slot.compare_exchange_strong(expected, by);
  });
}

}  // namespace

StopSignals::StopSignals(Loop& loop) : loop_(&loop), before_(arrived.load()) {
  const std::scoped_lock lock{installing};
  if (!replace_one(nullptr, &loop)) throw std::runtime_error{"more than 64 servers run in this process: run fewer"};
  if (installed++ != 0) return;
  arrived_before.store(arrived.load());
  sigevent ends{};
  ends.sigev_notify = SIGEV_SIGNAL;
  ends.sigev_signo = SIGINT;
  has_last.store(::timer_create(CLOCK_MONOTONIC, &ends, &last) == 0);
  struct sigaction action{};
  action.sa_handler = wirecall_stop_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &previous_interrupt);
  ::sigaction(SIGTERM, &action, &previous_terminate);
}

StopSignals::~StopSignals() {
  const std::scoped_lock lock{installing};
  if (--installed == 0) {
    if (has_last.exchange(false)) ::timer_delete(last);
    ::sigaction(SIGINT, &previous_interrupt, nullptr);
    ::sigaction(SIGTERM, &previous_terminate, nullptr);
  }
  replace_one(loop_, nullptr);
  // The loop must not go while another thread's handler is waking it.
  while (handlers_running.load() != 0) {
  }
}

unsigned StopSignals::count() const noexcept { return arrived.load() - before_; }

}  // namespace wirecall::net
