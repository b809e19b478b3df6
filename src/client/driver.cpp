// See driver.hpp.
#include "client/driver.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/assert.hpp"

namespace wirecall::net {

using std::chrono::nanoseconds;

// How often a thread that is blocked asks whether it is to go on.
constexpr std::chrono::milliseconds kInterruptionLook{20};

// While it exists, this thread drives; then somebody else does, if anybody wants to: while it drove, others may have
// begun to wait for that. Made and destroyed with the mutex held.
struct Driver::Driving {
  explicit Driving(Driver& owner) : driver(owner) {
    WIRECALL_ASSERT(!driver.driven_);
    driver.driven_ = true;
    driver.driver_.store(this_thread_name(), std::memory_order_relaxed);
  }
  Driving(Driving&&) = delete;
  ~Driving() {
    driver.driven_ = false;
    driver.driver_.store(nullptr, std::memory_order_relaxed);
    driver.pass_on();
  }
  Driver& driver;
};

// Gives up the claim of `run` or `exclusively`. Meanwhile other threads may have begun what needs the background
// thread. Destroyed with the mutex held.
struct Driver::Claiming {
  explicit Claiming(Driver& owner) : driver(owner) {}
  Claiming(Claiming&&) = delete;
  ~Claiming() {
    driver.claim_ = Claim::none;
    try {
      if (driver.asynchronous_ != 0 || driver.work_.background_need() == BackgroundNeed::always)
        driver.start_background();
    } catch (const std::exception&) {
      // Without a thread of its own what is left goes on with the next call.
    }
    driver.run_ready_.notify_all();
    driver.pass_on();
  }
  Driver& driver;
};

// After a thread has driven without any step, in `exclusively`: does what was asked for meanwhile, or leaves it to who
// drives next. Destroyed with the mutex held, after Driving and Claiming.
struct Driver::MakingUp {
  MakingUp(Driver& owner, Lock& held) : driver(owner), lock(held) { driver.left_over_ = false; }
  MakingUp(MakingUp&&) = delete;
  ~MakingUp() {
    if (driver.closing_) {
      const Driving driving{driver};
      driver.work_.end_all(lock);
    } else if (driver.wake_asked_ || driver.left_over_ || driver.work_.controls_wait()) {
      driver.step_once(lock);
    }
  }
  Driver& driver;
  Lock& lock;
};

// ---- a thread that blocks ----

bool Driver::wait(Lock& lock, Waiting& waiting, nanoseconds now, nanoseconds deadline) {
  // However it ends, and once this thread is no more among those that could drive.
  struct PassingOn {
    ~PassingOn() { driver.pass_on(); }
    Driver& driver;
  };
  const PassingOn passing_on{*this};
  const Listed listed{waiting_, waiting};
  if (driven_) wake_driver();  // it has not seen what we want to send
  nanoseconds ask = interrupted_ ? now + kInterruptionLook : nanoseconds::max();
  while (waiting.unfinished != 0 && now < deadline) {
    const nanoseconds until = std::min(ask, deadline);
    if (!driven_ && !others_drive()) {
      drive(lock, waiting, now, until);
      if (waiting.unfinished == 0) break;
    } else {
      waiting.ready.wait_until(lock, std::chrono::steady_clock::time_point{until});
    }
    now = loop_.now();
    if (now < ask || waiting.unfinished == 0) continue;
    if (interrupted(lock)) return false;
    now = loop_.now();
    ask = now + kInterruptionLook;
  }
  return true;
}

// Whoever may end the waiting is asked without the mutex; meanwhile others may drive.
bool Driver::interrupted(Lock& lock) {
  pass_on();
  const Unlocked unlocked{lock};
  return interrupted_();
}

void Driver::drive(Lock& lock, const Waiting& waiting, nanoseconds now, nanoseconds deadline) {
  const Driving driving{*this};
  for (; now < deadline; now = loop_.now()) {
    work_.step(lock, deadline - now, true);
    if (waiting.unfinished == 0 || others_drive()) return;
  }
}

// Somebody else is to drive now, if anybody wants to.
void Driver::pass_on() noexcept {
  if (driven_) return;
  if (closing_) {
    close_ready_.notify_all();
    return run_ready_.notify_all();
  }
  if (claim_ != Claim::none) return run_ready_.notify_all();
  if (background_needed()) return background_ready_.notify_one();
  if (!waiting_.empty()) waiting_.front()->ready.notify_one();
}

// ---- what is asynchronous ----

void Driver::want_background() {
  if (!on_driver() && claim_ == Claim::none) start_background();
}

void Driver::start_background() {
  if (background_.joinable() || one_thread_ || closing_) return;
  background_ = std::thread{[this, kept = work_.keep_alive()] { background(); }};
}

void Driver::background() {
  Lock lock{mutex_};
  while (!closing_) {
    if (driven_ || claim_ != Claim::none || !background_needed()) {
      // The thread that drives has to hand over to this one.
      if (driven_ && claim_ == Claim::none && background_needed()) wake_driver();
      background_ready_.wait(lock);
      continue;
    }
    const Driving driving{*this};
    while (!closing_ && claim_ == Claim::none && background_needed()) drive_once(lock, nanoseconds{-1});
    if (closing_) {
      work_.end_all(lock);
    } else if (work_.controls_wait()) {
      drive_once(lock, nanoseconds{0});
    }
  }
}

// One step of the background thread or of `run`. Without memory for it nothing is lost: this waits for kMemoryPause,
// and the next step continues.
void Driver::drive_once(Lock& lock, nanoseconds wait_max) {
  try {
    work_.step(lock, wait_max, false);
  } catch (const std::bad_alloc&) {
    const Unlocked unlocked{lock};
    std::this_thread::sleep_for(kMemoryPause);
  }
}

// ---- what is to be looked at ----

// Who drives looks at what it drives for before it waits again: so it need not wake itself.
void Driver::wake_driver() noexcept {
  if (!driven_) return background_ready_.notify_one();
  if (on_driver() || std::exchange(wake_asked_, true)) return;
  loop_.wake();
}

void Driver::asynchronous_begun(Lock& lock) noexcept {
  if (on_driver()) return write();
  if (closing_ && !driven_) {
    // The client is no more, and nobody drives any more: so what has failed for that reason is told here.
    const Driving driving{*this};
    return work_.deliver_ended(lock);
  }
  wake_driver();
}

void Driver::write() noexcept {
  work_.write();
  left_over_ = true;
}

void Driver::send_controls(Lock& lock) noexcept {
  if (!work_.controls_wait()) [[likely]]
    return;
  if (driven_) return wake_driver();
  step_once(lock);
}

void Driver::run_posted() noexcept {
  Lock lock{mutex_};
  if (!driven_) return step_once(lock);
  left_over_ = true;  // posting has woken the loop
}

void Driver::step_once(Lock& lock) noexcept {
  if (others_drive()) return pass_on();
  const Driving driving{*this};
  try {
    work_.step(lock, nanoseconds{0}, true);
  } catch (const std::exception&) {
  }
}

// ---- alone, and the end ----

void Driver::await_change(Lock& lock) {
  while (claim_ == Claim::exclusive) run_ready_.wait(lock);
}

// From here on no other thread begins to drive, and none drives.
void Driver::claim(Lock& lock, Claim claim, const char* refusal) {
  await_change(lock);
  if (claim_ != Claim::none) throw std::logic_error(refusal);
  claim_ = claim;
  while (driven_) {
    wake_driver();
    run_ready_.wait(lock);
  }
}

void Driver::run(const std::function<void()>& begin, const bool& finished,
                 const std::function<void()>& after_each_turn) {
  if (on_driver()) {
    throw std::logic_error("Client::run inside a callback, handler or coroutine of the same client: co_await instead");
  }
  Lock lock{mutex_};
  claim(lock, Claim::run, "Client::run while another thread is in it: one runs at a time");
  const Claiming claiming{*this};
  const Driving driving{*this};
  work_.catch_up(lock);
  {
    const Unlocked unlocked{lock};
    begin();
  }
  while (!finished) {
    drive_once(lock, nanoseconds{-1});
    const Unlocked unlocked{lock};
    after_each_turn();
  }
  if (work_.controls_wait()) drive_once(lock, nanoseconds{0});
}

void Driver::exclusively(const std::function<void()>& change) {
  if (on_driver()) return change();
  Lock lock{mutex_};
  claim(lock, Claim::exclusive,
        "what a client offers cannot be changed while another thread is in Client::run: do it before, or inside");
  const MakingUp making_up{*this, lock};
  const Claiming claiming{*this};
  const Driving driving{*this};
  // What it does not take is the user's, and may do anything as it goes.
  const Unlocked unlocked{lock};
  change();
}

void Driver::close() noexcept {
  Lock lock{mutex_};
  closing_ = true;
  background_ready_.notify_all();
  if (on_driver()) {
    // Inside a callback: the background thread, which this is, ends by itself.
    if (background_.joinable()) background_.detach();
    return;
  }
  wake_driver();
  if (background_.joinable()) {
    const Unlocked unlocked{lock};
    background_.join();
  }
  // Another thread may drive for a call of its own. It leaves that to us, and is told what has become of its call.
  close_ready_.wait(lock, [this] { return !driven_; });
  const Driving driving{*this};
  work_.end_all(lock);
}

}  // namespace wirecall::net
