// PythonMethod: a Python function as the untyped Binding that dispatch calls (wirecall/call.hpp). Plain functions run
// on the loop's thread, which takes the GIL once a turn; those that block, and generators, on a thread of the pool, as
// do plain ones while another thread waits for the GIL; async ones on the thread of an asyncio loop (async_calls.hpp).
// Made with the GIL. Otherwise const; thread: any.
#pragma once

#include <nanobind/nanobind.h>

#include "handler_input.hpp"
#include "reference.hpp"
#include "shape.hpp"
#include "wirecall/call.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/detail/off_loop_reply.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::python {

class AsyncCalls;

/// Where a method's function runs; wirecall/_methods.py has the same list.
enum class RunsOn : std::uint8_t { loop, pool, asyncio, pool_stream, asyncio_stream };

/// How one parameter is given, in the words of `inspect`; wirecall/_methods.py has the same list.
enum class ParameterKind : std::uint8_t {
  positional,
  keyword,
  var_positional,  ///< *args
  var_keyword,     ///< **kwargs
  context,         ///< given the call; peers have no parameter of that name
  context_keyword,
  input,  ///< given the stream that the caller sends; its shape is that of an item
  input_keyword,
};

struct Parameter {
  std::string name;
  ParameterKind kind;
  Shape* shape;               ///< null for a context
  nanobind::object keeps;     ///< the shape
  nanobind::object fallback;  ///< the default; null for none
  std::string docs;
  std::string shown_default;  ///< for documents, as JSON text
};

class PythonMethod;

/// A value that has been decoded, or not.
struct Argument {
  const Shape* shape;
  Reference value;
  const PythonMethod* method;
  bool failed = false;  // to be read
};

class PythonMethod {
 public:
  /// `described`: as wirecall/_methods.py describes the function (Described).
  PythonMethod(nanobind::object function, nanobind::tuple described, std::shared_ptr<AsyncCalls> async_calls);

  /// The method for Registry::add, which owns it from then on.
  [[nodiscard]] static detail::Binding bind(std::unique_ptr<PythonMethod> method);
  /// The same for Registry::add_subscription, of an async generator.
  [[nodiscard]] static detail::Binding bind_subscription(std::unique_ptr<PythonMethod> method);
  /// The parameters that peers give, with what documents them.
  [[nodiscard]] std::vector<Param> params() const;

  /// The arguments of one call, in the order of the signature.
  class Arguments {
   public:
    explicit Arguments(const PythonMethod& method);
    [[nodiscard]] void* const* pointers() noexcept { return pointers_.data(); }
    [[nodiscard]] Argument& operator[](std::size_t index) noexcept { return values_[index]; }
    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }

   private:
    std::vector<Argument> values_;
    std::vector<void*> pointers_;
  };

  /// Calls the function: a new reference, or null with a Python exception set. `input` is of make_input. With the GIL.
  [[nodiscard]] PyObject* call(Arguments& arguments, PyObject* context, PyObject* input) const;
  /// The arguments of the function in its order, one that gathers others excepted: a new reference, or null with a
  /// Python exception set. With the GIL.
  [[nodiscard]] PyObject* tuple_of(Arguments& arguments, PyObject* context) const;
  /// The same of a call's params, decoded here and now, where that takes little time: null where it does not, or they
  /// are wrong. On the loop's thread, which has the GIL from then on until its turn ends.
  [[nodiscard]] PyObject* decode_in_turn(Call& call) const;
  /// The stream that the caller sends, where the function takes one. On the loop's thread, before Call::context.
  [[nodiscard]] InputShare take_input(Call& call) const;
  [[nodiscard]] bool takes_input() const noexcept { return input_ != nullptr; }
  [[nodiscard]] bool is_asynchronous() const noexcept {
    return runs_on_ == RunsOn::asyncio || runs_on_ == RunsOn::asyncio_stream;
  }
  [[nodiscard]] bool takes_context() const noexcept { return takes_context_; }
  /// Whether a parameter of that name is given the call, or what it brings: peers have none of that name, and may not
  /// give it.
  [[nodiscard]] bool is_context(std::string_view name) const noexcept;
  [[nodiscard]] std::string summary() const;
  [[nodiscard]] const detail::Signature& signature() const noexcept { return signature_; }
  [[nodiscard]] RunsOn runs_on() const noexcept { return runs_on_; }
  /// What results, or a stream's items, are held against; null for nothing.
  [[nodiscard]] const Shape* checked() const noexcept { return checked_; }

 private:
  static void invoke_on_loop(void* stored, Call& call);
  static void invoke_on_pool(void* stored, Call& call);
  static const PythonMethod& of(void* stored) noexcept { return *static_cast<const PythonMethod*>(stored); }
  void run(Call& call) const;
  [[nodiscard]] bool decodes_long(const Call& call) const;
  [[nodiscard]] static std::optional<Error> decode_long(Call& call, Arguments& arguments, std::string_view id);
  bool take_integers(const Call& call, Arguments& arguments) const;

  nanobind::object function_;
  nanobind::tuple described_;  // has the shapes
  RunsOn runs_on_;
  std::vector<Parameter> parameters_;     // in the order in which the function has them
  std::vector<std::size_t> argument_of_;  // by parameter: the index of its argument
  std::vector<detail::ArgumentType> types_;
  std::vector<const Shape*> shapes_;  // by argument
  detail::Signature signature_;
  const Shape* checked_;
  bool checks_by_python_ = false;
  Reference keyword_names_;  // a tuple, of those given by name; null for none
  std::size_t positions_ = 0;
  const Shape* input_ = nullptr;  // of an item; null where it takes none
  bool takes_context_ = false;
  bool is_variadic_ = false;   // has *args or **kwargs
  bool runs_python_ = false;   // to make its arguments
  bool takes_any_ = false;     // whatever it is, extensions included
  bool all_integers_ = false;  // which come decoded with the envelope
  std::shared_ptr<AsyncCalls> async_calls_;
};

/// Answers with what a function has returned, or with the Python exception that is set where that is null: a
/// wirecall.Error as it is, any other as -32603, and the log is told. So is a result that is not as `checked` has it,
/// if that is not null. With the GIL.
template <class Sink>
void answer(Sink& sink, PyObject* result, std::string_view method, std::string_view id, const Shape* checked);

/// Of a tuple: the method that subscribes, the one that unsubscribes, and the notification.
[[nodiscard]] SubscriptionNames subscription_names(nanobind::tuple names);

}  // namespace wirecall::python
