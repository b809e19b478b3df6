// Batch and BatchOf: several calls and notifications in one message, their results typed and in their order. A Batch
// knows each result's type, a BatchOf takes any number of calls whose results are of one type:
//     auto [difference, name] = client.batch().call<int>("subtract", 42, 23).call<std::string>("name").send();
//     auto squares = client.batch_of<int>();
//     for (int i = 0; i < n; ++i) squares.call("square", i);
//     for (const std::expected<int, Error>& square : std::move(squares).send()) …
// Client::batch and Client::batch_of make them; they are sent in the same four ways as a Request. Each call has its own
// outcome, so each result is a std::expected. Thread: any, one at a time.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <expected>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "wirecall/detail/shared_call.hpp"
#include "wirecall/request.hpp"
#include "wirecall/request_with_outputs.hpp"

namespace wirecall {
namespace detail {
class OutgoingBatch;
}  // namespace detail

/// A handle by which a started batch is cancelled. Copyable; it may outlive the batch and the client.
class BatchHandle {
 public:
  BatchHandle() = default;
  /// Cancels each of its calls that has not ended: the call ends with -32800, and the server is told. False when all
  /// have ended already. Any thread.
  bool cancel() const;

 private:
  friend class detail::OutgoingBatch;

  std::vector<CallHandle> calls_;
};

namespace detail {

/// The calls of a batch, each with the index of its result.
class OutgoingBatch {
 public:
  static constexpr std::size_t kNoResult = std::numeric_limits<std::size_t>::max();

  explicit OutgoingBatch(std::shared_ptr<net::ClientCore> core) noexcept : core_(std::move(core)) {}

  [[nodiscard]] OutgoingCall begin_call(std::string_view method) const { return OutgoingCall{core_, method}; }
  void add(OutgoingCall call, std::size_t result);
  void add_notification(OutgoingCall call);
  /// For the calls that have been added.
  void set_timeout(std::chrono::milliseconds timeout) noexcept;
  /// For the calls that have been added, and for later ones.
  void set_stop(const std::stop_token& stop);
  void set_context(const Context& context);
  [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }
  /// Allocates the results beforehand, so that receiving them needs no memory.
  template <class Results>
  [[nodiscard]] Results make_results() const {
    Results results;
    if constexpr (requires { results.resize(result_count_); }) results.resize(result_count_);
    return results;
  }
  /// The executor of the thread that drives the client.
  [[nodiscard]] const Executor* driver() const noexcept { return calls_.front().driver(); }

  using Each = std::move_only_function<void(std::size_t result, Answer& answer)>;
  /// Makes the calls and blocks; then `each` is called once for each that has a result.
  void wait(Each each);
  /// Makes the calls; `each` is called for each that has a result, and at the end `done`, on the thread that drives.
  BatchHandle start(Each each, std::move_only_function<void()> done);
  /// After `start`, on the thread that drives: cancels the calls that have not ended; neither function is called.
  void forget() noexcept;
  /// After `start`, on any thread: cancels the calls that have not ended.
  void cancel() const noexcept;

 private:
  BatchHandle start_nothing(std::move_only_function<void()> done);

  std::shared_ptr<net::ClientCore> core_;
  std::vector<OutgoingCall> calls_;
  std::vector<std::size_t> results_;
  std::size_t result_count_ = 0;
  std::optional<Context> context_;       // for calls that are added later
  std::optional<std::stop_token> stop_;  // likewise; it replaces the context's
};

using BatchAnswers = std::vector<std::pair<std::size_t, BufferedAnswer>>;

class BatchAwaiterBase : public DrivenAwaiter<BatchAwaiterBase, BatchAnswers> {
 public:
  explicit BatchAwaiterBase(OutgoingBatch batch) noexcept : batch_(std::move(batch)) {}

  [[nodiscard]] bool await_ready() const noexcept { return batch_.size() == 0; }

 protected:
  ~BatchAwaiterBase() { forget(); }
  [[nodiscard]] const OutgoingBatch& batch() const noexcept { return batch_; }

 private:
  friend Driven;
  friend Pending;
  [[nodiscard]] const Executor* driver() const noexcept { return batch_.driver(); }
  bool begin(const std::shared_ptr<Pending>& pending);
  void take(BatchAnswers& payload) noexcept;
  void give_up(bool elsewhere) noexcept;
  virtual void answered(std::size_t result, Answer& answer) = 0;

  OutgoingBatch batch_;
};

/// Decodes the answer into the result of that index.
template <class... Ts>
void read_result(std::tuple<std::expected<Ts, Error>...>& results, std::size_t index, Answer& answer) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((I == index ? static_cast<void>(std::get<I>(results) = expected_of<Ts>(answer)) : void()), ...);
  }(std::index_sequence_for<Ts...>{});
}

template <class T>
void read_result(std::vector<std::expected<T, Error>>& results, std::size_t index, Answer& answer) {
  results[index] = expected_of<T>(answer);
}

/// The variables into which a call of a batch brings something back, and what its result is then.
template <class T>
struct TakenCall {
  using Result = T;
  using Into = Variables<>;
};
template <class T, class... Outs>
struct TakenCall<Returned<T, Outs...>> {
  using Result = T;
  using Into = Variables<Outs...>;
};

/// Those of all calls; empty where there are none.
template <class... Ts>
using BatchVariables = std::conditional_t<(std::is_same_v<typename TakenCall<Ts>::Into, Variables<>> && ...),
                                          std::tuple<>, std::tuple<typename TakenCall<Ts>::Into...>>;

template <class T>
std::expected<T, Error> deliver(std::expected<T, Error>&& result, const Variables<>&) {
  return std::move(result);
}
/// Writes the variables of all calls that have succeeded, and gives the results alone.
template <class... Ts, class... Into>
  requires(sizeof...(Into) != 0)
auto take_results(std::tuple<std::expected<Ts, Error>...>&& decoded, const std::tuple<Into...>& variables) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<std::expected<typename TakenCall<Ts>::Result, Error>...>{
        deliver(std::move(std::get<I>(decoded)), std::get<I>(variables))...};
  }(std::index_sequence_for<Ts...>{});
}
template <class Results>
Results take_results(Results&& results, std::tuple<>) {
  return std::move(results);
}

template <class Decoded, class Into>
class BatchAwaiter final : public BatchAwaiterBase {
 public:
  BatchAwaiter(OutgoingBatch batch, Into variables)
      : BatchAwaiterBase(std::move(batch)),
        results_(this->batch().template make_results<Decoded>()),
        variables_(variables) {}
  auto await_resume() {
    throw_if_stopped();
    return take_results(std::move(results_), variables_);
  }

 private:
  void answered(std::size_t result, Answer& answer) override { read_result(results_, result, answer); }

  Decoded results_;
  [[no_unique_address]] Into variables_;
};

template <class... Args>
void write_params(OutgoingCall& call, const Args&... args);

/// The four ways to send a batch of either kind. `Decoded` are the results as they come, of which some are written into
/// the variables of `Into` where they are taken.
template <class Decoded, class Into = std::tuple<>>
class BatchWays {
 public:
  using Results = decltype(take_results(std::declval<Decoded>(), std::declval<Into>()));

  /// Sends it and blocks until all calls have ended; each outcome is the result, or the Error that Client::call
  /// would throw.
  [[nodiscard]] Results send() && {
    Decoded results = batch_.template make_results<Decoded>();
    batch_.wait([&](std::size_t index, Answer& answer) { read_result(results, index, answer); });
    return take_results(std::move(results), variables_);
  }
  /// Sends it and returns; `callback(Results)` is called once, when all calls have ended, and must not throw. The
  /// handle cancels the calls that have not ended.
  template <std::invocable<Results> F>
  BatchHandle then(F callback) && {
    return start([callback = std::move(callback), variables = variables_](Decoded results) mutable {
      callback(take_results(std::move(results), variables));
    });
  }
  /// Sends it and returns; the future has the results when all calls have ended. Where something comes back, get()
  /// writes it: see RequestWithOutputs::future.
  [[nodiscard]] std::future<Results> future() && {
    auto promise = std::make_shared<std::promise<Decoded>>();
    start([promise](Decoded results) { promise->set_value(std::move(results)); });
    if constexpr (std::is_same_v<Results, Decoded>) {
      return promise->get_future();
    } else {
      return std::async(std::launch::deferred, [decoded = promise->get_future(), variables = variables_]() mutable {
        return take_results(decoded.get(), variables);
      });
    }
  }
  /// Sends it when awaited. Throws Cancelled when stop is requested of the task, which also cancels all calls.
  [[nodiscard]] BatchAwaiter<Decoded, Into> operator co_await() && { return {std::move(batch_), variables_}; }

 protected:
  explicit BatchWays(OutgoingBatch batch, Into variables = {}) noexcept
      : batch_(std::move(batch)), variables_(variables) {}

  template <class... Args>
  [[nodiscard]] OutgoingCall begin_call(std::string_view method, const Args&... args) const {
    OutgoingCall call = batch_.begin_call(method);
    write_params(call, args...);
    return call;
  }

  OutgoingBatch batch_;
  [[no_unique_address]] Into variables_;

 private:
  template <class F>
  BatchHandle start(F finished) {
    auto results = std::make_shared<Decoded>(batch_.template make_results<Decoded>());
    return batch_.start([results](std::size_t index, Answer& answer) { read_result(*results, index, answer); },
                        [results, finished = std::move(finished)]() mutable { finished(std::move(*results)); });
  }
};

}  // namespace detail

/// A batch that knows the type of each result.
template <class... Ts>
class [[nodiscard]] Batch
    : public detail::BatchWays<std::tuple<std::expected<Ts, Error>...>, detail::BatchVariables<Ts...>> {
  using Ways = detail::BatchWays<std::tuple<std::expected<Ts, Error>...>, detail::BatchVariables<Ts...>>;
  using Ways::batch_;
  using Ways::begin_call;
  using Ways::variables_;

 public:
  explicit Batch(detail::OutgoingBatch batch, detail::BatchVariables<Ts...> variables = {}) noexcept
      : Ways(std::move(batch), variables) {}

  /// Adds a call; its result comes after those of the calls before.
  template <class T = void, class... Args>
  Batch<Ts..., detail::DecodedOf<T, Args...>> call(std::string_view method, const Args&... args) && {
    using Added = Batch<Ts..., detail::DecodedOf<T, Args...>>;
    batch_.add(begin_call(method, args...), sizeof...(Ts));
    if constexpr (std::is_same_v<detail::BatchVariables<Ts..., detail::DecodedOf<T, Args...>>, std::tuple<>>) {
      return Added{std::move(batch_)};
    } else {
      return Added{std::move(batch_), std::tuple_cat(all_variables(), std::make_tuple(detail::variables_of(args...)))};
    }
  }
  /// Adds a call of a function of a shared header; see Client::call.
  template <auto Function, class... Args>
  Batch<Ts..., typename detail::SharedFunction<Function>::Decoded> call(Args&&... args) && {
    using Result = typename detail::SharedFunction<Function>::Result;
    if constexpr (detail::check_call<Function, Args&&...>()) {
      return detail::SharedFunction<Function>::write(
          [this](const auto&... written) {
            return std::move(*this).template call<Result>(method_name<Function>(), written...);
          },
          std::forward<Args>(args)...);
    } else {
      std::unreachable();
    }
  }
  /// Adds a notification, which has no result.
  template <class... Args>
  Batch&& notify(std::string_view method, const Args&... args) && {
    detail::check_notification<detail::kHasOutputs<Args...>, Args...>();
    batch_.add_notification(begin_call(method, args...));
    return std::move(*this);
  }
  /// For the calls that have been added; see Request::timeout.
  Batch&& timeout(std::chrono::milliseconds timeout) && {
    batch_.set_timeout(timeout);
    return std::move(*this);
  }
  /// For all calls, later ones too; see Request::stop.
  Batch&& stop(const std::stop_token& stop) && {
    batch_.set_stop(stop);
    return std::move(*this);
  }
  /// For all calls, later ones too; see Request::within.
  Batch&& within(const Context& context) && {
    batch_.set_context(context);
    return std::move(*this);
  }

 private:
  /// One tuple for each call, also where all are empty.
  [[nodiscard]] auto all_variables() const {
    if constexpr (std::is_same_v<detail::BatchVariables<Ts...>, std::tuple<>>) {
      return std::tuple<typename detail::TakenCall<Ts>::Into...>{};
    } else {
      return variables_;
    }
  }
};

/// A batch of any number of calls, each with a T as its result; the results are a vector in the order of the calls.
/// With more than Limits::batch calls nothing is sent, and each ends with -32006.
template <class T = void>
class [[nodiscard]] BatchOf : public detail::BatchWays<std::vector<std::expected<T, Error>>> {
  using Ways = detail::BatchWays<std::vector<std::expected<T, Error>>>;
  using Ways::batch_;
  using Ways::begin_call;

 public:
  explicit BatchOf(detail::OutgoingBatch batch) noexcept : Ways(std::move(batch)) {}

  /// Adds a call; its result comes after those of the calls before. Nothing can come back into variables: see Batch.
  template <class... Args>
  void call(std::string_view method, const Args&... args) {
    static_assert(!detail::kHasOutputs<Args...>,
                  "wirecall: a batch of any number of calls brings nothing back into variables; use Client::batch");
    batch_.add(begin_call(method, args...), calls_++);
  }
  /// Adds a call of a function of a shared header; see Client::call. Its result is a T.
  template <auto Function, class... Args>
  void call(Args&&... args) {
    static_assert(std::is_same_v<T, typename detail::SharedFunction<Function>::Result>,
                  "wirecall: the function's result is another type than the batch's");
    if constexpr (detail::check_call<Function, Args&&...>())
      detail::SharedFunction<Function>::write(
          [this](const auto&... written) { this->call(method_name<Function>(), written...); },
          std::forward<Args>(args)...);
  }
  /// Adds a notification, which has no result.
  template <class... Args>
  void notify(std::string_view method, const Args&... args) {
    detail::check_notification<detail::kHasOutputs<Args...>, Args...>();
    batch_.add_notification(begin_call(method, args...));
  }
  /// For the calls that have been added; see Request::timeout.
  void timeout(std::chrono::milliseconds timeout) noexcept { batch_.set_timeout(timeout); }
  /// For all calls, later ones too; see Request::stop.
  void stop(const std::stop_token& stop) { batch_.set_stop(stop); }
  /// For all calls, later ones too; see Request::within.
  void within(const Context& context) { batch_.set_context(context); }
  /// How many calls are in it.
  [[nodiscard]] std::size_t size() const noexcept { return calls_; }

 private:
  std::size_t calls_ = 0;
};

}  // namespace wirecall
