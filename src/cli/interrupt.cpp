// See interrupt.hpp. A signal handler is given nothing but its number, so what it touches is the process's.
#include "cli/interrupt.hpp"

#include <atomic>
#include <cerrno>
#include <semaphore.h>

namespace wirecall::cli {
namespace {

std::atomic<int> arrived{0};
sem_t news;

extern "C" void wirecall_note_signal(int number) {
  const int error = errno;
  int none = 0;
  arrived.compare_exchange_strong(none, number);
  ::sem_post(&news);
  errno = error;
}

}  // namespace

Interrupt::Interrupt() {
  arrived.store(0);
  ::sem_init(&news, 0, 0);
  struct sigaction action{};
  action.sa_handler = wirecall_note_signal;
  // Back to the default at the first: the second ends the process. Output that is being written goes on.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, &interrupt_);
  ::sigaction(SIGTERM, &action, &terminate_);
}

Interrupt::~Interrupt() {
  // The semaphore stays: a handler may be running on another thread still.
  ::sigaction(SIGINT, &interrupt_, nullptr);
  ::sigaction(SIGTERM, &terminate_, nullptr);
}

int Interrupt::signal() const noexcept { return arrived.load(); }

void Interrupt::wait() const noexcept {
  while (::sem_wait(&news) != 0 && errno == EINTR) {
  }
}

void Interrupt::release() const noexcept { ::sem_post(&news); }

}  // namespace wirecall::cli
