// See method.hpp.
#include "method.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <nanobind/stl/string.h>

#include "async_calls.hpp"
#include "callback.hpp"
#include "context.hpp"
#include "encode.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "off_loop_call.hpp"
#include "streams.hpp"
#include "validating_encoder.hpp"
#include "wirecall/detail/batch_counts.hpp"

namespace wirecall::python {
namespace nb = nanobind;
using detail::WatchdogScope;
using detail::WatchdogSlot;

// Params that do not fit are read a second time, to tell all mistakes in them. A value that has been decoded is skipped
// then, since decoding may run user code; after an exception every value is.
static bool decode_argument(Reader& reader, void* argument) {
  Argument& into = *static_cast<Argument*>(argument);
  if (into.value) {
    static_cast<void>(reader.skip());
    return true;
  }
  if (into.failed || PyErr_Occurred() != nullptr) return false;
  into.value = Reference::steal(into.shape->decode(reader));
  into.failed = !into.value;
  return !into.failed;
}

// Of *args: one more element.
static bool decode_element(Reader& reader, void* argument) {
  if (PyErr_Occurred() != nullptr) return false;
  Argument& into = *static_cast<Argument*>(argument);
  if (!into.value) into.value = Reference::steal(PyList_New(0));
  const Reference element = Reference::steal(into.shape->decode(reader));
  return element && PyList_Append(into.value.get(), element.get()) == 0;
}

// Of **kwargs: one more member.
static bool decode_other(Reader& reader, void* argument, std::string_view name) {
  Argument& into = *static_cast<Argument*>(argument);
  if (into.method->is_context(name)) return reader.fail("nothing");
  if (!into.value) into.value = Reference::steal(PyDict_New());
  const Reference key =
      Reference::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
  if (key && PyDict_Contains(into.value.get(), key.get()) == 1) return reader.fail("one value");
  const Reference value = Reference::steal(into.shape->decode(reader));
  return key && value && PyDict_SetItem(into.value.get(), key.get(), value.get()) == 0;
}

static bool is_input(ParameterKind kind) noexcept {
  return kind == ParameterKind::input || kind == ParameterKind::input_keyword;
}

static bool accepts_nothing(Reader&) { return false; }

// Whether params of any type may hold arrays, images and the like, which libraries decode.
static bool may_hold_extensions(const Call& call) {
  return !call.message().is_json() || call.params().find("\"$") != std::string_view::npos;
}

template <class Sink>
void answer(Sink& sink, PyObject* result, std::string_view method, std::string_view id, const Shape* checked) {
  if (result == nullptr) return sink.error(take_error(method, id));
  if (Writer* const writer = sink.begin_result()) {
    std::string where;
    if (!encode_as(*writer, result, checked, where)) writer->fail(where);
  }
  sink.end_result();
}
template void answer(Call&, PyObject*, std::string_view, std::string_view, const Shape*);
template void answer(detail::OffLoopReply&, PyObject*, std::string_view, std::string_view, const Shape*);

SubscriptionNames subscription_names(nb::tuple names) {
  const auto name = [&](std::size_t index) { return nb::cast<std::string>(names[index]); };
  return {.subscribe = name(0), .unsubscribe = name(1), .notification = name(2)};
}

// Where in what describes a function the native side finds what; wirecall/_methods.py has the same order (Described).
constexpr std::size_t kRunsOn = 0, kParameters = 1, kResult = 2, kChecked = 3, kSummary = 4, kGivesBack = 5, kLeave = 7;

PythonMethod::PythonMethod(nb::object function, nb::tuple described, std::shared_ptr<AsyncCalls> async_calls)
    : function_(std::move(function)),
      described_(std::move(described)),
      runs_on_(static_cast<RunsOn>(nb::cast<int>(described_[kRunsOn]))),
      checked_(described_[kChecked].is_none() ? nullptr : nb::cast<Shape*>(described_[kChecked])),
      checks_by_python_(checked_ != nullptr && checked_->checks_by_python()),
      async_calls_(std::move(async_calls)) {
  const auto rows = nb::cast<nb::list>(described_[kParameters]);
  argument_of_.resize(rows.size());
  for (nb::handle entry : rows) {
    const auto row = nb::cast<nb::tuple>(entry);
    parameters_.push_back({.name = nb::cast<std::string>(row[0]),
                           .kind = static_cast<ParameterKind>(nb::cast<int>(row[1])),
                           .shape = row[2].is_none() ? nullptr : nb::cast<Shape*>(row[2]),
                           .keeps = nb::borrow(row[2]),
                           .fallback = nb::cast<bool>(row[3]) ? nb::borrow(row[4]) : nb::object{},
                           .docs = nb::cast<std::string>(row[5]),
                           .shown_default = nb::cast<std::string>(row[6])});
  }
  // The order of the signature: what has a name first, then *args and **kwargs.
  const auto add = [&](std::size_t index, auto* decode, bool optional) -> detail::ArgumentType& {
    const Shape* const shape = parameters_[index].shape;
    argument_of_[index] = types_.size();
    shapes_.push_back(shape);
    types_.push_back(
        {.decode = decode, .optional = optional, .rest = false, .accepts = &accepts_nothing, .type = &shape->info()});
    return types_.back();
  };
  nb::list keywords;
  for (std::size_t i = 0; i != parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const ParameterKind kind = parameter.kind;
    const bool is_keyword = kind == ParameterKind::keyword || kind == ParameterKind::context_keyword ||
                            kind == ParameterKind::input_keyword;
    if (is_keyword) keywords.append(nb::str(parameter.name.c_str()));
    if (kind == ParameterKind::positional || kind == ParameterKind::context || kind == ParameterKind::input)
      ++positions_;
    if (parameter.shape == nullptr) takes_context_ = true;
    if (is_input(kind)) input_ = parameter.shape;
    if (kind == ParameterKind::positional || kind == ParameterKind::keyword)
      add(i, &decode_argument, parameter.fallback.is_valid()).named_only = is_keyword;
  }
  if (keywords.size() != 0) keyword_names_ = Reference::steal(PyList_AsTuple(keywords.ptr()));
  for (std::size_t i = 0; i != parameters_.size(); ++i) {
    if (parameters_[i].kind == ParameterKind::var_positional) add(i, &decode_element, true).rest = true;
  }
  for (std::size_t i = 0; i != parameters_.size(); ++i) {
    if (parameters_[i].kind != ParameterKind::var_keyword) continue;
    detail::ArgumentType& others = add(i, &decode_argument, true);
    others.named_only = true;
    others.decode_other = &decode_other;
  }
  is_variadic_ = std::ranges::any_of(types_, &detail::ArgumentType::gathers);
  const auto any = [this](const auto& is) { return std::ranges::any_of(shapes_, is); };
  runs_python_ = any([](const Shape* shape) { return shape->runs_python(); });
  takes_any_ = any([](const Shape* shape) { return shape->holds(ShapeKind::any); });
  if (types_.size() > detail::kParametersMax)
    throw nb::value_error("a method takes at most 63 parameters: take a dataclass");
  all_integers_ = !is_variadic_ && !types_.empty() && types_.size() <= kIntegersKept &&
                  std::ranges::all_of(shapes_, [](const Shape* s) { return s->kind() == ShapeKind::integer; });
  signature_ = {.arguments = types_,
                .result = &nb::cast<Shape*>(described_[kResult])->info(),
                .asynchronous = runs_on_ != RunsOn::loop,
                .stream = runs_on_ == RunsOn::pool_stream || runs_on_ == RunsOn::asyncio_stream,
                .event = nullptr,
                .input = input_ != nullptr ? &input_->info() : nullptr,
                .result_has_out = nb::cast<bool>(described_[kGivesBack])};
}

std::string PythonMethod::summary() const { return nb::cast<std::string>(described_[kSummary]); }

std::vector<Param> PythonMethod::params() const {
  std::vector<Param> params;
  for (const Parameter& parameter : parameters_) {
    if (parameter.kind == ParameterKind::positional || parameter.kind == ParameterKind::keyword)
      params.push_back(Param{parameter.name}.description(parameter.docs).shown_default(parameter.shown_default));
  }
  return params;
}

bool PythonMethod::is_context(std::string_view name) const noexcept {
  return std::ranges::any_of(
      parameters_, [&](const Parameter& p) { return (p.shape == nullptr || is_input(p.kind)) && p.name == name; });
}

InputShare PythonMethod::take_input(Call& call) const {
  if (input_ == nullptr) return InputShare{};
  std::shared_ptr<detail::Input> input = call.input();
  static_cast<void>(call.bounds());  // its time is counted from here
  if (input == nullptr || call.executor() == nullptr) return InputShare{std::make_shared<HandlerInput>(*input_)};
  InputShare share{std::make_shared<HandlerInput>(*input_, call, async_calls_)};
  share.get()->start(std::move(input), call);
  return share;
}

detail::Binding PythonMethod::bind_subscription(std::unique_ptr<PythonMethod> method) {
  method->signature_.event = method->signature_.result;
  method->signature_.result = &detail::TypeInfoOf<std::string>::value;
  method->signature_.stream = false;
  detail::Binding binding = bind(std::move(method));
  binding.invoke = [](void* stored, Call& call) { start_subscription(of(stored), call, *of(stored).async_calls_); };
  return binding;
}

namespace {

// The batches of a generator of streams, which Python gathers.
class StreamBatches final : public detail::BatchCounts {
 public:
  explicit StreamBatches(std::shared_ptr<Callback> leave) noexcept : leave_(std::move(leave)) {}

  [[nodiscard]] std::optional<detail::BatchSpreads> spreads() const override { return std::nullopt; }
  // A server that stops says it in each turn, and Python need not hear it so often.
  void leave_now() noexcept override {
    const std::scoped_lock lock{mutex_};
    if (!posted_.expired()) return;
    try {
      const auto posted = std::make_shared<const bool>(true);
      leave_->invoke("a batch of streams", [posted] { return nb::make_tuple(); });
      posted_ = posted;
    } catch (const std::bad_alloc&) {
      // Those that wait go on waiting.
    }
  }

 private:
  const std::shared_ptr<Callback> leave_;
  std::mutex mutex_;
  std::weak_ptr<const bool> posted_;  // it lives until Python has heard it
};

}  // namespace

detail::Binding PythonMethod::bind(std::unique_ptr<PythonMethod> method) {
  const auto invoke = [&]() -> detail::Invoke {
    switch (method->runs_on_) {
      case RunsOn::loop: return &invoke_on_loop;
      case RunsOn::pool: return &invoke_on_pool;
      case RunsOn::asyncio: return [](void* stored, Call& call) { of(stored).async_calls_->start(of(stored), call); };
      case RunsOn::pool_stream:
      case RunsOn::asyncio_stream: break;
    }
    return [](void* stored, Call& call) { start_stream(of(stored), call, *of(stored).async_calls_); };
  }();
  const detail::Signature* const signature = &method->signature_;
  const auto destroy = [](void* stored) {
    const Gil gil;  // which whoever destroys a registry need not have
    delete static_cast<PythonMethod*>(stored);
  };
  std::shared_ptr<detail::BatchCounts> batches;
  if (nb::object leave = method->described_[kLeave]; !leave.is_none())
    batches = std::make_shared<StreamBatches>(std::make_shared<Callback>(std::move(leave), method->async_calls_));
  return {
      .callable = {method.release(), destroy}, .invoke = invoke, .signature = signature, .batches = std::move(batches)};
}

// ---- arguments ----

PythonMethod::Arguments::Arguments(const PythonMethod& method) {
  values_.reserve(method.shapes_.size());
  pointers_.reserve(method.shapes_.size());
  for (const Shape* shape : method.shapes_) pointers_.push_back(&values_.emplace_back(Argument{shape, {}, &method}));
}

// Takes the small integers that have been read with the envelope. False where they are not the arguments.
bool PythonMethod::take_integers(const Call& call, Arguments& arguments) const {
  const Received& message = call.message();
  if (!all_integers_ || message.integer_count != types_.size()) return false;
  std::array<std::uint32_t, kIntegersKept> by_name;
  const std::uint32_t* values = message.integers.data();
  if (message.integers_named) {
    if (!detail::order_by_name(message, call.method(), by_name.data())) return false;
    values = by_name.data();
  } else if (std::ranges::any_of(types_, &detail::ArgumentType::named_only)) {
    return false;
  }
  for (std::size_t i = 0; i != types_.size(); ++i) {
    arguments[i].value = Reference::steal(PyLong_FromUnsignedLong(values[i]));
  }
  return true;
}

PyObject* PythonMethod::call(Arguments& arguments, PyObject* context, PyObject* input) const {
  if (input_ != nullptr && input == nullptr) return nullptr;  // it could not be made
  // One slot in front, where a bound method puts `self` (PY_VECTORCALL_ARGUMENTS_OFFSET).
  constexpr std::size_t kOnStack = 12;
  std::array<PyObject*, kOnStack> on_stack;
  std::vector<PyObject*> in_heap;
  PyObject** stack = on_stack.data();
  const auto value_of = [&](std::size_t i) -> PyObject* {
    const Parameter& parameter = parameters_[i];
    if (parameter.shape == nullptr) return context;
    if (is_input(parameter.kind)) return input;
    PyObject* const given = arguments[argument_of_[i]].value.get();
    return given != nullptr ? given : parameter.fallback.ptr();
  };
  if (!is_variadic_) [[likely]] {
    if (parameters_.size() >= kOnStack) {
      in_heap.resize(parameters_.size() + 1);
      stack = in_heap.data();
    }
    for (std::size_t i = 0; i != parameters_.size(); ++i) stack[i + 1] = value_of(i);
    return PyObject_Vectorcall(function_.ptr(), stack + 1, positions_ | PY_VECTORCALL_ARGUMENTS_OFFSET,
                               keyword_names_.get());
  }
  const Reference positions = Reference::steal(PyList_New(0));
  const Reference named = Reference::steal(PyDict_New());
  if (!positions || !named) return nullptr;
  for (std::size_t i = 0; i != parameters_.size(); ++i) {
    PyObject* const value = value_of(i);
    switch (parameters_[i].kind) {
      case ParameterKind::positional:
      case ParameterKind::context:
      case ParameterKind::input:
        if (PyList_Append(positions.get(), value) != 0) return nullptr;
        break;
      case ParameterKind::var_positional:
        for (Py_ssize_t at = 0; value != nullptr && at < PyList_Size(value); ++at) {
          if (PyList_Append(positions.get(), PyList_GetItem(value, at)) != 0) return nullptr;
        }
        break;
      case ParameterKind::keyword:
      case ParameterKind::context_keyword:
      case ParameterKind::input_keyword:
        if (PyDict_SetItemString(named.get(), parameters_[i].name.c_str(), value) != 0) return nullptr;
        break;
      case ParameterKind::var_keyword:
        if (value != nullptr && PyDict_Update(named.get(), value) != 0) return nullptr;
        break;
    }
  }
  const Reference tuple = Reference::steal(PyList_AsTuple(positions.get()));
  return tuple ? PyObject_Call(function_.ptr(), tuple.get(), named.get()) : nullptr;
}

PyObject* PythonMethod::tuple_of(Arguments& arguments, PyObject* context) const {
  Reference tuple = Reference::steal(PyTuple_New(static_cast<Py_ssize_t>(parameters_.size())));
  if (!tuple) return nullptr;
  for (std::size_t i = 0; i != parameters_.size(); ++i) {
    PyObject* value = context;
    if (parameters_[i].shape != nullptr) {
      PyObject* const given = arguments[argument_of_[i]].value.get();
      value = given != nullptr ? given : parameters_[i].fallback.ptr();
    }
    Py_XINCREF(value);
    if (value == nullptr || PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), value) != 0) return nullptr;
  }
  return tuple.release();
}

// ---- on the loop's thread ----

// Waits for the GIL, which this thread then has until its turn ends. False where it has lost the loop meanwhile, and so
// the GIL again: whoever has the loop may need that, and nobody may wait for the loop with it.
static bool take_gil(Call& call) {
  WatchdogScope waiting{call.watchdog_slot(), call.method(), &call, WatchdogSlot::kAround};
  turn::take_gil();
  waiting.close(&turn::release);
  call.renew_watchdog_slot();
  return turn::holds_gil();
}

void PythonMethod::invoke_on_loop(void* stored, Call& call) {
  const PythonMethod& method = of(stored);
  if (turn::holds_gil()) return method.run(call);
  // Another thread waits for the GIL already: the loop goes on, and this call waits in the pool.
  if (call.blocking_pool() != nullptr && !turn::claim()) return invoke_on_pool(stored, call);
  while (!take_gil(call)) {
  }
  const bool kept = call.at_turn_end(&turn::release);
  method.run(call);
  if (!kept) turn::release();
}

void PythonMethod::run(Call& call) const {
  const bool may_lose_gil = turn::holds_gil();
  const std::string_view id = call.is_notification() ? std::string_view{} : call.message().id();
  Arguments arguments{*this};
  const bool kept = take_integers(call, arguments);
  const bool decodes_long = !kept && this->decodes_long(call);
  if (!kept && !decodes_long) {
    detail::ParamReaders& readers = call.param_readers();
    if (!detail::decode_params(call.params(), call.method(), readers, arguments.pointers())) {
      if (PyErr_Occurred() != nullptr) return answer(call, nullptr, call.method().name(), id, checked_);
      return call.invalid_params(*readers.reader);
    }
  }
  Reference context;
  if (takes_context_) context = Reference::steal(make_context(context_on_loop(call)));
  // A handler that waits for its input does not run here, but where there is no other thread.
  Reference input;
  if (takes_input()) input = Reference::steal(make_input(std::make_shared<HandlerInput>(*input_), is_asynchronous()));
  // While user code runs, or what may take long, another thread may take over the loop. So the answer goes into memory
  // of its own, unless it is written at once.
  WatchdogScope scope{call.watchdog_slot(), call.method(), &call,
                      decodes_long ? WatchdogSlot::kAround : WatchdogSlot::kHandler};
  std::optional<Error> refusal;
  if (decodes_long) {
    refusal = decode_long(call, arguments, id);
    scope.enter_phase(WatchdogSlot::kHandler);
  }
  Reference result;
  if (!refusal) {
    result = Reference::steal(this->call(arguments, context.get(), input.get()));
    if (!scope.may_be_late() && result && !checks_by_python_ && is_written_at_once(result.get())) [[likely]] {
      scope.close(&turn::release);
      if (!turn::holds_gil() && may_lose_gil) [[unlikely]] {
        while (!take_gil(call)) {
        }
        call.at_turn_end(&turn::release);
      }
      return answer(call, result.get(), call.method().name(), id, checked_);
    }
  }
  detail::OffLoopReply reply{call};
  scope.enter_phase(WatchdogSlot::kAround);
  if (refusal) {
    reply.error(*refusal);
  } else {
    answer(reply, result.get(), call.method().name(), id, checked_);
  }
  result = {};
  context = {};
  for (std::size_t i = 0; i != arguments.size(); ++i) arguments[i].value = {};
  scope.close(&turn::release);
  reply.give(call);
}

bool PythonMethod::decodes_long(const Call& call) const {
  return runs_python_ || call.params().size() >= detail::kLongParams || (takes_any_ && may_hold_extensions(call));
}

PyObject* PythonMethod::decode_in_turn(Call& call) const {
  if (decodes_long(call)) return nullptr;
  if (!turn::holds_gil()) {
    // Without a turn that ends nobody would give the GIL back.
    if (!call.at_turn_end(&turn::release) || !turn::claim()) return nullptr;
    if (!take_gil(call)) return nullptr;
  }
  Arguments arguments{*this};
  if (!take_integers(call, arguments)) {
    const bool decoded =
        detail::decode_params(call.params(), call.method(), call.param_readers(), arguments.pointers());
    if (!decoded) {
      PyErr_Clear();
      return nullptr;
    }
  }
  PyObject* const tuple = tuple_of(arguments, nullptr);
  if (tuple == nullptr) PyErr_Clear();
  return tuple;
}

// What is wrong with the params; nothing when they have been decoded.
std::optional<Error> PythonMethod::decode_long(Call& call, Arguments& arguments, std::string_view id) {
  detail::ParamReaders readers{.reader = call.codec().reader(), .defaults = {}};
  if (detail::decode_params(call.params(), call.method(), readers, arguments.pointers())) return std::nullopt;
  if (PyErr_Occurred() != nullptr) return take_error(call.method().name(), id);
  return decode_error(*readers.reader);
}

// ---- on the pool ----

void PythonMethod::invoke_on_pool(void* stored, Call& call) {
  const PythonMethod& method = of(stored);
  detail::BlockingPool* const pool = call.blocking_pool();
  if (pool == nullptr) {
    const Gil gil;
    return method.run(call);
  }
  InputShare input = method.take_input(call);
  std::optional<CallContext> context;
  if (method.takes_context_)
    context = method.runs_on_ == RunsOn::pool ? context_off_loop(call, call.context(), nullptr, nullptr)
                                              : context_on_loop(call);
  detail::OffLoopReply reply{call};
  OffLoopCall off_loop{method, call, std::move(input), std::move(context)};
  const std::stop_token stop = call.stop_token();
  ReplySink sink = call.detach();
  sink.keeps(call.params().size());
  pool->run([off_loop = std::move(off_loop), reply = std::move(reply), stop,
             sink = std::move(sink)]() mutable -> detail::BlockingPool::Job {
    if (stop.stop_requested()) {  // nobody has waited so long for a thread to be free
      reply.error(Error{ErrorCode::cancelled});
    } else {
      const Gil gil;
      if (const auto result = off_loop.run()) {
        off_loop.answer(reply, result->get());
      } else {
        reply.error(result.error());
      }
    }
    return [reply = std::move(reply), sink = std::move(sink)]() mutable { reply.give(sink); };
  });
}

}  // namespace wirecall::python
