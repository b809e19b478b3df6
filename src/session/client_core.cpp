// See client_core.hpp. Here are the threads and the life of a call; what goes over connections is in
// client_exchange.cpp.
#include "session/client_core.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include "base/room.hpp"
#include "message/own_error.hpp"
#include "transport/places.hpp"
#include "wirecall/client.hpp"

namespace wirecall::session {

using detail::Answer;
using detail::ErrorClass;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

namespace {

// Larger buffers are given back after the call that needed them; smaller ones where there are many calls.
constexpr std::size_t kKeptBytesMax = 1024 * 1024;
constexpr std::size_t kKeptBytesOfMany = 16 * 1024;
constexpr std::size_t kMany = 64;
// A connection that was not looked at for so long may be gone without our having noticed.
constexpr milliseconds kStale{100};
// From this timeout on, what the clock said at the system's last tick is exact enough to reckon from.
constexpr milliseconds kLongTimeout{1000};
// Before what there was no memory for is tried again.
constexpr milliseconds kMemoryPause{1};
// How often a notification that the system does not take at once looks whether it has been taken.
constexpr milliseconds kSendLook{1};
constexpr std::string_view kDestroyed = "the client was destroyed";

// A name for the present thread that costs no call.
const void* this_thread_name() noexcept {
  thread_local const char name = 0;
  return &name;
}

Error cancelled(bool written) {
  return message::make(
      {.code = ErrorCode::cancelled, .reason = "the call was given up", .delivered = written ? "maybe" : "no"});
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
    core.led_ = true;
    core.driver_.store(this_thread_name(), std::memory_order_relaxed);
  }
  Driving(Driving&&) = delete;
  ~Driving() {
    core.led_ = false;
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
      workspace_(json_codec(), &loop_, &options_.log),
      text_(options_.limits, options_.delimiter),
      hello_(hello_of(options_.client_id)),
      host_{.loop = loop_, .registry = registry_, .limits = options_.limits, .workspace = workspace_, .owner = *this},
      reader_(json_codec().reader()) {
  workspace_.tasks.set_home(loop_.inbox());
  if (endpoints_.empty()) throw std::invalid_argument("a client needs at least one URI to connect to");
  if (!seams.dial) seams.dial = &transport::connect_to;
  unsigned seed = seams.seed != 0 ? seams.seed : std::random_device{}();
  for (std::uint32_t i = 0; i < options_.connections; ++i) {
    connections_.push_back(std::make_unique<ClientConnection>(*this, endpoints_, options_, seams.dial, seed++));
  }
}

ClientCore::~ClientCore() {
  for (const auto& connection : connections_) connection->session.reset();
}

bool ClientCore::on_driver() const noexcept { return driver_.load(std::memory_order_relaxed) == this_thread_name(); }

std::uint64_t ClientCore::responses_dropped() const {
  const std::scoped_lock lock{mutex_};
  return dropped_;
}

// ---- calls, lent and given back ----

ClientCall& ClientCore::take() {
  if (on_driver() && !own_idle_.empty()) {
    ClientCall& call = *own_idle_.back();
    own_idle_.pop_back();
    return call;
  }
  const std::scoped_lock lock{mutex_};
  if (idle_.empty()) {
    make_room(idle_, calls_.size() + 1);  // for when they come back
    ClientCall& call = calls_.emplace_back();
    if (calls_.size() > kMany) many_.store(true, std::memory_order_relaxed);
    return call;
  }
  ClientCall& call = *idle_.back();
  idle_.pop_back();
  return call;
}

void ClientCore::give_back(ClientCall& call) noexcept {
  // A stop callback may be running and wait for the mutex: so it goes while we do not hold that.
  call.on_stop.reset();
  call.stop = {};
  call.done = nullptr;
  call.error.reset();
  call.error_class = ErrorClass::error;
  call.keep_response = call.stop_asked = false;
  call.credit = 0;
  call.stream = nullptr;
  const std::size_t kept = many_.load(std::memory_order_relaxed) ? kKeptBytesOfMany : kKeptBytesMax;
  for (Buffer* buffer : {&call.request, &call.response}) {
    if (buffer->capacity() > kept) buffer->release();
  }
  if (on_driver()) {
    try {
      return own_idle_.push_back(&call);
    } catch (const std::bad_alloc&) {
      // There is room in the other list.
    }
  }
  const std::scoped_lock lock{mutex_};
  idle_.push_back(&call);
}

// ---- the life of a call ----

// The calls join the queue as one message, or have ended.
void ClientCore::submit(std::span<ClientCall* const> calls) {
  const bool long_timeouts = std::ranges::all_of(calls, [](const auto* call) { return call->timeout >= kLongTimeout; });
  const nanoseconds now = long_timeouts ? loop_.recently() : loop_.now();
  ClientCall* last = nullptr;
  for (ClientCall* call : calls) {
    call->begun = now;
    call->deadline = now + call->timeout;
    call->stage = ClientCall::Stage::queued;
    call->retried = false;
    call->response.clear();
    call->connection = nullptr;
    call->next_in_batch = nullptr;
    call->id = 0;
    call->result_at = call->result_size = 0;
    ++call->generation;
    if (call->asynchronous) {
      ++asynchronous_;
      earliest_ = std::min(earliest_, call->deadline);
    }
    if (call->stop_asked && !call->error) call->error = cancelled(false);
    if (call->error) [[unlikely]] {
      finish(*call);
      continue;
    }
    if (closing_) [[unlikely]] {
      lose(*call, kDestroyed, false);
      continue;
    }
    if (last == nullptr) {
      queue_.push_back(*call);
    } else {
      last->next_in_batch = call;
    }
    last = call;
  }
}

// Tells whoever waits, now or, for something asynchronous, when the driver comes to it.
void ClientCore::finish(ClientCall& call) {
  call.stage = ClientCall::Stage::ended;
  if (call.stream != nullptr) return finish_stream(call);
  if (call.asynchronous) {
    ended_.push_back(call);
  } else if (--call.waiting->unfinished == 0) {
    call.waiting->ready.notify_one();
  }
}

// To end with an error needs no memory but the error's.
void ClientCore::fail(ClientCall& call, Error error, ErrorClass thrown) noexcept {
  call.error = std::move(error);
  call.error_class = thrown;
  finish(call);
}

// Without memory for the reason there is none.
void ClientCore::lose(ClientCall& call, std::string_view why, bool written) noexcept {
  const auto delivered = written ? ConnectionError::Delivered::maybe : ConnectionError::Delivered::no;
  try {
    fail(call, ConnectionError{std::string{why}, delivered}, ErrorClass::connection_error);
  } catch (const std::bad_alloc&) {
    fail(call, Error{ErrorCode::provider_lost}, ErrorClass::connection_error);
  }
}

// The call is nowhere any more; the server is told where it may know of it.
void ClientCore::withdraw(ClientCall& call) noexcept {
  switch (call.stage) {
    case ClientCall::Stage::queued: {
      // It may be any element of a batch that has not been written.
      for (ClientCall* before : queue_) {
        if (before == &call) {
          if (call.next_in_batch == nullptr) {
            queue_.remove(call);
          } else {
            queue_.replace(call, *call.next_in_batch);
          }
          break;
        }
        while (before->next_in_batch != nullptr && before->next_in_batch != &call) before = before->next_in_batch;
        if (before->next_in_batch == nullptr) continue;
        before->next_in_batch = call.next_in_batch;
        break;
      }
      call.next_in_batch = nullptr;
      break;
    }
    case ClientCall::Stage::delayed:
      delayed_.remove(call);
      break;
    case ClientCall::Stage::written: {
      ClientConnection& connection = *call.connection;
      if (connection.http != nullptr) {
        withdraw_posted(call);
        break;
      }
      connection.others_sent = true;
      if (call.notification) {
        connection.notifications.remove(call);
        break;
      }
      take_out(call);
      try {
        connection.controls.push_back(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":)" +
                                      std::to_string(call.id) + "}}");
      } catch (const std::bad_alloc&) {
        // Without memory to tell the server, its answer comes and is dropped.
      }
      break;
    }
    case ClientCall::Stage::idle:
    case ClientCall::Stage::ended:
      return;
  }
  call.stage = ClientCall::Stage::idle;
}

// Its time is up.
void ClientCore::give_up(ClientCall& call) noexcept {
  const bool written = call.stage == ClientCall::Stage::written;
  withdraw(call);
  if (!written && !last_failure_.empty()) return lose(call, last_failure_, false);
  fail(call,
       message::make(
           {.code = ErrorCode::timeout, .reason = "no answer came in time", .delivered = written ? "maybe" : "no"}));
}

void ClientCore::expire(nanoseconds now) noexcept {
  earliest_ = nanoseconds::max();
  const auto look = [this, now](ClientCall& call) {
    if (!call.asynchronous) return;
    if (call.deadline <= now) {
      give_up(call);
    } else {
      earliest_ = std::min(earliest_, call.deadline);
    }
  };
  for (ClientCall* head : queue_) {
    for (ClientCall* call = head; call != nullptr;) look(*std::exchange(call, call->next_in_batch));
  }
  for (ClientCall* call : delayed_) look(*call);
  for (const auto& connection : connections_) {
    for (ClientCall* call : connection->calls) look(*call);
    for (ClientCall* call : connection->notifications) look(*call);
  }
}

bool ClientCore::cancel(ClientCall& call, std::uint64_t generation) noexcept {
  const std::scoped_lock lock{mutex_};
  if (call.generation != generation) return false;
  if (call.stage == ClientCall::Stage::idle || call.stage == ClientCall::Stage::ended) return false;
  const bool written = call.stage == ClientCall::Stage::written;
  withdraw(call);
  fail(call, cancelled(written));
  wake_driver();
  return true;
}

void StopCall::operator()() const noexcept {
  if (core->cancel(*call, generation)) return;
  const std::scoped_lock lock{core->mutex_};
  if (call->generation + 1 == generation) call->stop_asked = true;  // before it was handed in
}

void ClientCore::forget(ClientCall& call, std::uint64_t generation) noexcept {
  {
    Lock lock{mutex_};
    if (call.generation != generation || call.stage == ClientCall::Stage::idle) return;
    if (call.stage == ClientCall::Stage::ended) {
      // Its answer is on its way to a task that does not want it any more.
      ended_.remove(call);
    } else {
      withdraw(call);
    }
    call.stage = ClientCall::Stage::idle;
    --asynchronous_;
    send_controls(lock);
  }
  give_back(call);
}

// ---- the ways to call ----

void ClientCore::exchange(std::span<ClientCall* const> calls) {
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
    const nanoseconds begun = calls[0]->begun;
    if ((begun - last_used_ > kStale || http_) && !led_ && !others_drive() && any_up()) [[unlikely]] {
      // Should the server have gone in the meantime, the call had better wait for the next connection.
      const Driving driving{*this};
      {
        const Unlocked unlocked{lock};
        loop_.turn(nanoseconds{0});
      }
      after_turn(lock);
    }
    last_used_ = begun;
    if (waiting.unfinished != 0) wait(lock, waiting, begun, calls[0]->deadline);
    for (ClientCall* call : calls) {
      if (call->stage != ClientCall::Stage::ended) give_up(*call);
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
  if (led_) return wake_driver();
  if (others_drive()) return pass_on();
  const Driving driving{*this};
  try {
    step(lock, nanoseconds{0}, true);
  } catch (const std::exception&) {
  }
}

void ClientCore::start(std::span<ClientCall* const> calls) {
  Lock lock{mutex_};
  try {
    want_driver();
  } catch (...) {
    lock.unlock();
    for (ClientCall* call : calls) give_back(*call);
    throw;
  }
  for (ClientCall* call : calls) call->asynchronous = true;
  submit(calls);
  asynchronous_begun();
}

// Before something asynchronous is begun: somebody drives, or will.
void ClientCore::want_driver() {
  if (!on_driver() && !running_) start_background();
}

void ClientCore::asynchronous_begun() noexcept {
  if (on_driver()) return write_queued();
  wake_driver();
}

void ClientCore::connect() {
  if (on_driver()) throw std::logic_error("Client::connect inside a callback would wait for itself");
  Lock lock{mutex_};
  if (provides()) start_background();
  if (any_up()) return;
  Waiting waiting{.ready = {}, .unfinished = 1};
  {
    const Listed listed{connecting_, waiting};
    const nanoseconds now = loop_.now();
    wait(lock, waiting, now, now + milliseconds{options_.connect_timeout_ms} * endpoints_.size());
  }
  if (any_up()) return;
  throw ConnectionError{
      last_failure_.empty() ? "cannot connect to " + endpoints_.front().uri() + " in time" : last_failure_,
      ConnectionError::Delivered::no};
}

// ---- driving ----

// Who drives looks at what it drives for before it waits again: so it need not wake itself.
void ClientCore::wake_driver() noexcept {
  if (!led_) return background_ready_.notify_one();
  if (on_driver() || std::exchange(wake_asked_, true)) return;
  loop_.wake();
}

// Somebody else is to drive now, if anybody wants to.
void ClientCore::pass_on() noexcept {
  if (led_) return;
  if (running_) return run_ready_.notify_one();
  if (background_needed()) return background_ready_.notify_one();
  if (!waiting_.empty()) waiting_.front()->ready.notify_one();
}

// `now` is the time, or was a moment ago: that saves a look at the clock for most calls.
void ClientCore::wait(Lock& lock, Waiting& waiting, nanoseconds now, nanoseconds deadline) {
  // However it ends, and once this thread is no more among those that could drive.
  struct PassingOn {
    ~PassingOn() { core.pass_on(); }
    ClientCore& core;
  };
  const PassingOn passing_on{*this};
  const Listed listed{waiting_, waiting};
  if (led_) wake_driver();  // it has not seen what we want to send
  while (waiting.unfinished != 0 && now < deadline) {
    if (!led_ && !others_drive()) {
      lead(lock, waiting, now, deadline);
      if (waiting.unfinished == 0) break;
      now = loop_.now();
    } else if (waiting.ready.wait_until(lock, steady_clock::time_point{deadline}) == std::cv_status::timeout) {
      break;
    } else {
      now = loop_.now();
    }
  }
}

void ClientCore::lead(Lock& lock, const Waiting& waiting, nanoseconds now, nanoseconds deadline) {
  const Driving driving{*this};
  for (; now < deadline; now = loop_.now()) {
    step(lock, deadline - now, true);
    if (waiting.unfinished == 0 || others_drive()) return;
  }
}

// One turn of the loop and what belongs to it; `lock` is held before and after. With `may_block` the driver is a thread
// that blocks anyway, so it may as well connect.
void ClientCore::step(Lock& lock, nanoseconds wait_max, bool may_block) {
  wake_asked_ = false;
  if (idle_.empty()) {
    // In idle_ there is room for all calls, and has to stay.
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
  if (std::exchange(given_up_, false)) after_turn(lock);
  tend(lock, wait_max, may_block);
  if (may_block && others_drive()) return;  // they have come meanwhile, and call back on their own threads
  write_queued();
  for (const auto& connection : connections_) {
    if (connection->notifications.empty() || connection->http != nullptr) continue;
    // Nothing wakes us when the system has taken them: so that is looked for, at once and then now and again.
    const nanoseconds look = std::exchange(connection->notifications_fresh, false) ? nanoseconds{0} : kSendLook;
    wait_max = wait_max < nanoseconds{0} ? look : std::min(wait_max, look);
  }
  if (!ended_.empty()) wait_max = nanoseconds{0};
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
  if (background_.joinable() || one_thread_) return;
  background_ = std::thread{[self = shared_from_this()] { self->background(); }};
}

// A step of those whom others wait for: where there is no memory for it, nothing of it is lost, and the next one goes
// on with it.
void ClientCore::go_on(Lock& lock, nanoseconds wait_max) {
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
    if (led_ || running_ || !background_needed()) {
      // Whoever leads has to know that it is wanted here.
      if (led_ && background_needed() && !running_) wake_driver();
      background_ready_.wait(lock);
      continue;
    }
    const Driving driving{*this};
    while (!closing_ && !running_ && background_needed()) go_on(lock, nanoseconds{-1});
    if (closing_) {
      end_all(lock);
    } else if (controls_wait()) {
      go_on(lock, nanoseconds{0});
    }
  }
}

void ClientCore::run(const std::function<void()>& begin, const bool& finished,
                     const std::function<void()>& after_each_turn) {
  if (on_driver()) {
    throw std::logic_error("Client::run inside a callback, handler or coroutine of the same client: co_await instead");
  }
  Lock lock{mutex_};
  if (running_) throw std::logic_error("Client::run while another thread is in it: one runs at a time");
  running_ = true;
  while (led_) {
    wake_driver();
    run_ready_.wait(lock);
  }
  struct Leaving {
    ~Leaving() {
      core.running_ = false;
      try {
        if (core.asynchronous_ != 0) core.start_background();
      } catch (const std::exception&) {
        // Without a thread of its own what is left goes on with the next call.
      }
      core.pass_on();
    }
    ClientCore& core;
  };
  const Leaving leaving{*this};
  const Driving driving{*this};
  {
    const Unlocked unlocked{lock};
    begin();
  }
  while (!finished) {
    go_on(lock, nanoseconds{-1});
    const Unlocked unlocked{lock};
    after_each_turn();
  }
  if (controls_wait()) go_on(lock, nanoseconds{0});
}

// ---- the end ----

void ClientCore::end_all(Lock& lock) noexcept {
  const auto end = [this](ClientCall& call) {
    const bool written = call.stage == ClientCall::Stage::written;
    withdraw(call);
    lose(call, kDestroyed, written);
  };
  for (const auto& connection : connections_) {
    for (ClientCall* call : connection->calls) end(*call);
    for (ClientCall* call : connection->notifications) end(*call);
  }
  while (!queue_.empty()) end(queue_.front());
  while (!delayed_.empty()) end(delayed_.front());
  deliver_ended(lock);
}

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
  const Driving driving{*this};
  end_all(lock);
}

}  // namespace wirecall::session
