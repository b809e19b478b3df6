// See client_dialer.hpp.
#include "session/client_dialer.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>

namespace wirecall::session {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Shared with the thread that dials, which may outlive the dialer: resolving a name cannot be interrupted.
struct Dialer::Attempt {
  std::mutex mutex;
  bool abandoned = false;
  std::optional<Result> result;
  std::function<void()> wake;  // not called any more once abandoned
};

Dialer::Dialer(const std::vector<Endpoint>& endpoints, const ClientOptions& options, DialFunction dial, unsigned seed)
    : endpoints_(&endpoints), options_(&options), dial_(std::move(dial)), random_(seed) {}

Dialer::~Dialer() {
  if (attempt_ == nullptr) return;
  const std::scoped_lock lock{attempt_->mutex};
  attempt_->abandoned = true;
  if (attempt_->result && attempt_->result->descriptor >= 0) ::close(attempt_->result->descriptor);
}

Dialer::Result Dialer::attempt(const DialFunction& dial, const Endpoint& endpoint, milliseconds timeout) {
  try {
    return {.descriptor = dial(endpoint, timeout), .failure = {}};
  } catch (const std::runtime_error& error) {
    return {.descriptor = -1, .failure = error.what()};
  }
}

void Dialer::start(std::function<void()> wake) {
  attempt_ = std::make_shared<Attempt>();
  attempt_->wake = std::move(wake);
  const milliseconds timeout{options_->connect_timeout_ms};
  const auto tried = [shared = attempt_, dial = dial_, place = endpoint(), timeout] {
    Result result = attempt(dial, place, timeout);
    const std::scoped_lock lock{shared->mutex};
    if (!shared->abandoned) {
      shared->result = std::move(result);
      shared->wake();
    } else if (result.descriptor >= 0) {
      ::close(result.descriptor);
    }
  };
  try {
    std::thread{tried}.detach();
  } catch (const std::system_error& error) {
    attempt_->result = Result{.failure = std::string{"no thread can be had to connect on: "} + error.what()};
    attempt_->wake();
  }
}

std::optional<Dialer::Result> Dialer::poll() {
  std::optional<Result> result;
  {
    const std::scoped_lock lock{attempt_->mutex};
    if (!attempt_->result) return std::nullopt;
    result = std::move(attempt_->result);
    attempt_->result.reset();
  }
  attempt_.reset();
  return result;
}

void Dialer::failed(nanoseconds now) {
  turn_away();
  ++failures_;
  due_ = now;
  if (failures_ % endpoints_->size() != 0) return;
  // Each round of failures doubles the pause. The random half keeps many clients of one server that comes back from
  // coming all at once.
  const std::size_t rounds = std::min<std::size_t>(failures_ / endpoints_->size() - 1, 30);
  const std::uint64_t whole =
      std::min<std::uint64_t>(std::uint64_t{options_->reconnect_min_ms} << rounds, options_->reconnect_max_ms);
  const std::uint64_t half_us = whole * 500;
  due_ = now + std::chrono::microseconds{half_us + std::uniform_int_distribution<std::uint64_t>{0, half_us}(random_)};
}

void Dialer::ended(nanoseconds now, bool useful) {
  if (!useful) return failed(now);
  failures_ = 0;
  due_ = now;
}

}  // namespace wirecall::session
