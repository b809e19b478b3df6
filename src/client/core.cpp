// See client_core.hpp. Here are the threads: the ways to make a call, and who drives; the life of a call is in
// client_life.cpp, that of connections in client_connect.cpp, what goes over them in client_exchange.cpp.
#include "client/core.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include "transport/endpoint_socket.hpp"
#include "wirecall/client.hpp"

namespace wirecall::session {

using detail::Answer;
using detail::ErrorClass;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

namespace {

// A connection that was not looked at for so long may be gone without our having noticed.
constexpr milliseconds kStale{100};
// Before what there was no memory for is tried again.
constexpr milliseconds kMemoryPause{1};
// How often a notification that the system does not take at once looks whether it has been taken.
constexpr milliseconds kSendLook{1};
// How often a thread that is blocked asks whether it is to go on.
constexpr milliseconds kInterruptionLook{20};

// A name for the present thread that costs no call.
const void* this_thread_name() noexcept {
  thread_local const char name = 0;
  return &name;
}

// An entry of a list for as long as it lives.
class Listed {
 public:
  Listed(std::vector<Waiting*>& list, Waiting& entry) : list_(&list), entry_(&entry) { list_->push_back(entry_); }
  Listed(Listed&&) = delete;
  ~Listed() { std::erase(*list_, entry_); }

 private:
  std::vector<Waiting*>* list_;
  Waiting* entry_;
};

// With a log that takes no more than it is to be told.
ClientOptions logging(ClientOptions options) {
  options.log = options.log.at_least(options.log_level);
  return options;
}

std::unique_ptr<runtime::Backend> checked(const ClientOptions& options, std::unique_ptr<runtime::Backend> backend) {
  require_valid(options);
  return backend;
}

}  // namespace

// While it exists, this thread drives; then somebody else does, if anybody wants to: while it drove, others may have
// begun to wait for that. Made and destroyed with the mutex held.
struct ClientCore::Driving {
  explicit Driving(ClientCore& owner) : core(owner) {
    core.driven_ = true;
    core.driver_.store(this_thread_name(), std::memory_order_relaxed);
  }
  Driving(Driving&&) = delete;
  ~Driving() {
    core.driven_ = false;
    core.driver_.store(nullptr, std::memory_order_relaxed);
    core.pass_on();
  }
  ClientCore& core;
};

ClientCore::ClientCore(std::vector<Endpoint> endpoints, ClientOptions options, ClientSeams seams)
    : options_(logging(std::move(options))),
      endpoints_(std::move(endpoints)),
      one_thread_(seams.one_thread),
      http_(std::ranges::find(endpoints_, EndpointKind::http, &Endpoint::kind) != endpoints_.end()),
      loop_(checked(options_, std::move(seams.backend))),
      loop_context_(json_codec(), &loop_, &options_.log),
      text_(options_.limits, options_.delimiter),
      hello_(hello_of(options_)),
      host_{.loop = loop_,
            .registry = registry_,
            .limits = options_.limits,
            .loop_context = loop_context_,
            .owner = *this},
      reader_(json_codec().reader()) {
  loop_context_.tasks.set_executor(loop_.inbox());
  loop_context_.services.told_of_callers = true;
  if (endpoints_.empty()) throw std::invalid_argument("a client needs at least one URI to connect to");
  if (!seams.dial) seams.dial = &transport::connect_to;
  unsigned seed = seams.seed != 0 ? seams.seed : std::random_device{}();
  for (std::uint32_t i = 0; i < options_.connections; ++i) {
    connections_.push_back(std::make_unique<ClientConnection>(*this, endpoints_, options_, seams.dial, seed++));
  }
}

ClientCore::~ClientCore() {
  loop_context_.stop_requests.finish();
  for (const auto& connection : connections_) connection->session.reset();
}

bool ClientCore::on_driver() const noexcept { return driver_.load(std::memory_order_relaxed) == this_thread_name(); }

std::uint64_t ClientCore::responses_dropped() const {
  const std::scoped_lock lock{mutex_};
  return dropped_;
}

// ---- the ways to call ----

void ClientCore::call_and_wait(std::span<ClientCall* const> calls) {
  if (calls.empty()) return;
  if (on_driver()) {
    for (ClientCall* call : calls) {
      if (call->error) continue;
      call->error.emplace(ErrorCode::internal_error,
                          "a blocking call inside a callback, handler or coroutine of the same client would wait for "
                          "itself: co_await it, or give it a callback");
      call->error_class = ErrorClass::local_error;
    }
    return;
  }
  Waiting& waiting = calls[0]->own_waiting;
  Lock lock{mutex_};
  waiting.unfinished = calls.size();
  for (ClientCall* call : calls) {
    call->asynchronous = false;
    call->waiting = &waiting;
  }
  submit(calls);
  try {
    for (nanoseconds now = calls[0]->begun; waiting.unfinished != 0;) {
      // Each has its own time. When it is over for one, the others are still waited for.
      nanoseconds due = nanoseconds::max();
      for (const ClientCall* call : calls) {
        if (call->stage != ClientCall::Stage::ended) due = std::min(due, call->deadline);
      }
      const bool goes_on = wait(lock, waiting, now, due);
      if (waiting.unfinished == 0) break;
      if (!goes_on) {
        for (ClientCall* call : calls) {
          if (call->stage != ClientCall::Stage::ended) stop(*call);
        }
        break;
      }
      now = std::max(loop_.now(), due);
      for (ClientCall* call : calls) {
        if (call->stage != ClientCall::Stage::ended && call->deadline <= now) give_up(*call);
      }
    }
  } catch (...) {
    // What has failed need not have ended them, but they are their maker's from here on.
    for (ClientCall* call : calls) {
      withdraw(*call);
      call->stage = ClientCall::Stage::idle;
    }
    throw;
  }
  for (ClientCall* call : calls) call->stage = ClientCall::Stage::idle;
  send_controls(lock);
}

bool ClientCore::controls_wait() const noexcept {
  return given_up_ || std::ranges::any_of(connections_, [](const auto& connection) {
           return connection->up() && !connection->controls.empty();
         });
}

// What is to be said about calls is said now, by whoever drives. Where that fails, with the next call.
void ClientCore::send_controls(Lock& lock) noexcept {
  if (!controls_wait()) [[likely]]
    return;
  if (driven_) return wake_driver();
  if (others_drive()) return pass_on();
  const Driving driving{*this};
  try {
    step(lock, nanoseconds{0}, true);
  } catch (const std::exception&) {
  }
}

void ClientCore::start(std::span<ClientCall* const> calls) {
  Lock lock{mutex_};
  want_driver();
  for (ClientCall* call : calls) call->asynchronous = true;
  submit(calls);
  asynchronous_begun(lock);
}

// Before something asynchronous is begun: somebody drives, or will.
void ClientCore::want_driver() {
  if (!on_driver() && !running_) start_background();
}

void ClientCore::asynchronous_begun(Lock& lock) noexcept {
  if (on_driver()) return write_queued();
  if (closing_ && !driven_) {
    // The client is no more, and nobody drives any more: so what has failed for that reason is told here.
    const Driving driving{*this};
    return deliver_ended(lock);
  }
  wake_driver();
}

void ClientCore::connect() {
  if (on_driver()) throw std::logic_error("Client::connect inside a callback would wait for itself");
  Lock lock{mutex_};
  if (provides() || declares()) start_background();
  if (!connected_as_wanted()) {
    refusal_.reset();
    for (const auto& connection : connections_) connection->dialer.try_now();
    const nanoseconds waits_until = loop_.now() + milliseconds{options_.wait_ms};
    await_news(lock, milliseconds{options_.connect_timeout_ms} * endpoints_.size(),
               [this] { return connected_as_wanted() || refusal_ || !last_failure_.empty(); });
    for (nanoseconds now; !connected_as_wanted() && !refusal_ && (now = loop_.now()) < waits_until;) {
      await_news(lock, waits_until - now, [this] { return connected_as_wanted() || refusal_; });
    }
  }
  if (!connected_as_wanted()) {
    if (refusal_) throw ConnectionError{*refusal_};
    throw ConnectionError{
        last_failure_.empty() ? "cannot connect to " + endpoints_.front().uri() + " in time" : last_failure_,
        ConnectionError::Delivered::no};
  }
  if (declares()) await_declared(lock);
}

// Waits to be told of connections and of answers, at least once, until what has come is `enough`.
void ClientCore::await_news(Lock& lock, nanoseconds time, const std::function<bool()>& enough) {
  nanoseconds now = loop_.now();
  const nanoseconds until = now + time;
  do {
    Waiting waiting{.ready = {}, .unfinished = 1};
    const Listed listed{connecting_, waiting};
    if (!wait(lock, waiting, now, until)) break;
    now = loop_.now();
  } while (!enough() && now < until);
}

// ---- driving ----

// Who drives looks at what it drives for before it waits again: so it need not wake itself.
void ClientCore::wake_driver() noexcept {
  if (!driven_) return background_ready_.notify_one();
  if (on_driver() || std::exchange(wake_asked_, true)) return;
  loop_.wake();
}

// Somebody else is to drive now, if anybody wants to.
void ClientCore::pass_on() noexcept {
  if (driven_) return;
  if (closing_) return close_ready_.notify_all();
  if (running_) return run_ready_.notify_all();
  if (background_needed()) return background_ready_.notify_one();
  if (!waiting_.empty()) waiting_.front()->ready.notify_one();
}

// Whoever may end the waiting is asked without the mutex; meanwhile others may drive.
bool ClientCore::interrupted(Lock& lock) {
  pass_on();
  const Unlocked unlocked{lock};
  return interrupted_();
}

// `now` is the time, or was a moment ago: that saves a look at the clock for most calls. False when the waiting has
// been interrupted.
bool ClientCore::wait(Lock& lock, Waiting& waiting, nanoseconds now, nanoseconds deadline) {
  // However it ends, and once this thread is no more among those that could drive.
  struct PassingOn {
    ~PassingOn() { core.pass_on(); }
    ClientCore& core;
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
      waiting.ready.wait_until(lock, steady_clock::time_point{until});
    }
    now = loop_.now();
    if (now < ask || waiting.unfinished == 0) continue;
    if (interrupted(lock)) return false;
    now = loop_.now();
    ask = now + kInterruptionLook;
  }
  return true;
}

void ClientCore::drive(Lock& lock, const Waiting& waiting, nanoseconds now, nanoseconds deadline) {
  const Driving driving{*this};
  for (; now < deadline; now = loop_.now()) {
    step(lock, deadline - now, true);
    if (waiting.unfinished == 0 || others_drive()) return;
  }
}

// Should the server have closed a connection while nobody drove, calls had better wait for the next one. True when that
// took a turn: then whatever was known before it may have changed.
bool ClientCore::look_first(Lock& lock) {
  const nanoseconds now = loop_.recently();
  const bool stale = now - std::exchange(last_used_, now) > kStale || http_;
  if (!stale || free_connection() == nullptr) [[likely]]
    return false;  // none would be written to
  {
    const Unlocked unlocked{lock};
    loop_.turn(nanoseconds{0});
  }
  asynchronous_ -= std::exchange(delivered_, 0);
  after_turn(lock);
  return true;
}

// One turn of the loop and what belongs to it; `lock` is held before and after. With `may_block` the driver is a thread
// that blocks anyway, so it may as well connect.
void ClientCore::step(Lock& lock, nanoseconds wait_max, bool may_block) {
  bool turned = !queue_.empty() && !(may_block && others_drive()) && look_first(lock);
  wake_asked_ = told_ = false;  // a turn may have taken note of a wake: what that was for is looked at below
  if (idle_.size() < own_idle_.size()) {
    // Or other threads would make new ones, though many are free. In idle_ there is room for all calls, and has to
    // stay.
    idle_.insert(idle_.end(), own_idle_.begin(), own_idle_.end());
    own_idle_.clear();
  }
  if (earliest_ != nanoseconds::max()) {
    const nanoseconds now = loop_.now();
    if (now >= earliest_) expire(now);
    if (earliest_ != nanoseconds::max()) {
      wait_max = wait_max < nanoseconds{0} ? earliest_ - now : std::min(wait_max, earliest_ - now);
    }
  }
  if (!ended_.empty() && !(may_block && background_needed())) {
    deliver_ended(lock);
    wait_max = nanoseconds{0};  // whoever drives may have waited for just that
  }
  if (std::exchange(given_up_, false)) {
    after_turn(lock);
    wake_asked_ = false;
    turned = true;
  }
  maintain_connections(lock, wait_max, may_block);
  tell_news(lock);
  if (may_block && others_drive()) return;  // they have come meanwhile, and call back on their own threads
  write_queued();
  for (const auto& connection : connections_) {
    if (connection->notifications.empty() || connection->http != nullptr) continue;
    // Nothing wakes us when the system has taken them: so that is looked for, at once and then now and again.
    const nanoseconds poll_max = std::exchange(connection->notifications_fresh, false) ? nanoseconds{0} : kSendLook;
    wait_max = wait_max < nanoseconds{0} ? poll_max : std::min(wait_max, poll_max);
  }
  // Whoever drives may have waited for just what has ended meanwhile.
  if (turned || told_ || !ended_.empty()) wait_max = nanoseconds{0};
  if (controls_wait())
    wait_max = wait_max < nanoseconds{0} ? kMemoryPause : std::min<nanoseconds>(wait_max, kMemoryPause);
  {
    const Unlocked unlocked{lock};
    for (const auto& connection : connections_) {
      if (connection->session != nullptr) connection->session->flush();
    }
    loop_.turn(wait_max);
  }
  asynchronous_ -= std::exchange(delivered_, 0);
  after_turn(lock);
}

void ClientCore::deliver_ended(Lock& lock) {
  // One after the other, since each may give up another.
  while (!ended_.empty()) {
    ClientCall& call = ended_.pop_front();
    call.stage = ClientCall::Stage::idle;
    if (call.stream != nullptr) {
      --asynchronous_;
      deliver_stream(lock, call);
      continue;
    }
    const Unlocked unlocked{lock};
    Answer answer = call.error ? Answer{std::move(*call.error), call.error_class} : Answer{};
    deliver(call, answer);
  }
  asynchronous_ -= std::exchange(delivered_, 0);
}

// The driver's, without the mutex.
void ClientCore::deliver(ClientCall& call, Answer& answer) noexcept {
  if (call.on_stop) call.on_stop.reset();
  ++delivered_;
  detail::AnswerFunction done = std::move(call.done);
  // Now, so that a call made by `done` finds this one free. What `answer` refers to is elsewhere.
  give_back(call);
  if (done) done(answer);
}

void ClientCore::start_background() {
  if (background_.joinable() || one_thread_ || closing_) return;
  background_ = std::thread{[self = shared_from_this()] { self->background(); }};
}

// One step of the background thread or of `run`. Without memory for it nothing is lost: this waits for kMemoryPause,
// and the next step continues.
void ClientCore::drive_once(Lock& lock, nanoseconds wait_max) {
  try {
    step(lock, wait_max, false);
  } catch (const std::bad_alloc&) {
    const Unlocked unlocked{lock};
    std::this_thread::sleep_for(kMemoryPause);
  }
}

void ClientCore::background() {
  Lock lock{mutex_};
  while (!closing_) {
    if (driven_ || running_ || !background_needed()) {
      // The thread that drives has to hand over to this one.
      if (driven_ && background_needed() && !running_) wake_driver();
      background_ready_.wait(lock);
      continue;
    }
    const Driving driving{*this};
    while (!closing_ && !running_ && background_needed()) drive_once(lock, nanoseconds{-1});
    if (closing_) {
      end_all(lock);
    } else if (controls_wait()) {
      drive_once(lock, nanoseconds{0});
    }
  }
}

// `run` or `exclusively` has driven until now. Meanwhile other threads may have started what needs the background
// thread.
ClientCore::Leaving::~Leaving() {
  core.running_ = core.exclusive_ = false;
  try {
    if (core.asynchronous_ != 0 || core.declares()) core.start_background();
  } catch (const std::exception&) {
    // Without a thread of its own what is left goes on with the next call.
  }
  core.run_ready_.notify_all();
  core.pass_on();
}

void ClientCore::run(const std::function<void()>& begin, const bool& finished,
                     const std::function<void()>& after_each_turn) {
  if (on_driver()) {
    throw std::logic_error("Client::run inside a callback, handler or coroutine of the same client: co_await instead");
  }
  Lock lock{mutex_};
  while (exclusive_) run_ready_.wait(lock);
  if (running_) throw std::logic_error("Client::run while another thread is in it: one runs at a time");
  running_ = true;
  while (driven_) {
    wake_driver();
    run_ready_.wait(lock);
  }
  const Leaving leaving{*this};
  const Driving driving{*this};
  look_first(lock);
  {
    const Unlocked unlocked{lock};
    begin();
  }
  while (!finished) {
    drive_once(lock, nanoseconds{-1});
    const Unlocked unlocked{lock};
    after_each_turn();
  }
  if (controls_wait()) drive_once(lock, nanoseconds{0});
}

// ---- the end ----

void ClientCore::close() noexcept {
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
  end_all(lock);
}

}  // namespace wirecall::session
