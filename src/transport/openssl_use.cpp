// See openssl_use.hpp.
#include "transport/openssl_use.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <openssl/ssl.h>
#include <thread>
#include <unistd.h>

namespace wirecall::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A use takes milliseconds. In a child of a fork there is none that would end.
constexpr milliseconds kPatience{1000};
constexpr milliseconds kLook{1};

std::atomic<int> uses{0};
std::atomic<bool> exiting{false};
std::thread::id ends_process;  // this thread; written before `exiting`

void await_uses() {
  ends_process = std::this_thread::get_id();
  exiting = true;
  for (const auto until = steady_clock::now() + kPatience; uses != 0 && steady_clock::now() < until;)
    std::this_thread::sleep_for(kLook);
}

}  // namespace

// OpenSSL's own function for the exit comes first, so that it is called last.
void OpensslUse::watch_exit() noexcept {
  static const bool watched = OPENSSL_init_ssl(0, nullptr) == 1 && std::atexit(await_uses) == 0;
  static_cast<void>(watched);
}

void OpensslUse::begin() noexcept {
  ++uses;
  if (!exiting || ends_process == std::this_thread::get_id()) return;
  --uses;
  for (;;) ::pause();
}

void OpensslUse::end() noexcept { --uses; }

void OpensslUse::end_thread() noexcept { OPENSSL_thread_stop(); }

}  // namespace wirecall::transport
