// PythonMethod: a Python function as a method. It makes the untyped Binding that dispatch calls (wirecall/call.hpp),
// and says where the function runs: on the loop's own thread with the GIL taken once a turn (plain functions), on a
// thread of the pool (those that block, generators, and all others while somebody waits for the GIL), or on the thread
// of an asyncio loop (async ones; async_calls.hpp). Made with the GIL. Otherwise const; thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <nanobind/nanobind.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference.hpp"
#include "shape.hpp"
#include "wirecall/call.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/detail/off_loop_reply.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::python {

class AsyncCalls;
struct CallContext;

/// Where a method's function runs.
enum class Execution : std::uint8_t { loop, pool, asyncio, pool_stream, asyncio_stream };

/// How one parameter is filled; wirecall/_methods.py has the same list.
enum class Filled : std::uint8_t { by_position, by_name, rest, others, context, context_by_name };

struct Parameter {
  std::string name;
  Filled filled;
  Shape* shape;                ///< null for a context
  nanobind::object keeps;      ///< the shape
  nanobind::object otherwise;  ///< the default; null for none
};

/// As wirecall/_methods.py describes them: (name, filled, shape or None, whether it has a default, default, docs).
[[nodiscard]] std::vector<Parameter> parameters_of(nanobind::list described);

/// What a method returns.
struct Results {
  nanobind::object declared;  ///< a Shape, for documents
  nanobind::object checked;   ///< the Shape that results, or a stream's items, are held against; None for none
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
  PythonMethod(nanobind::object function, Execution execution, std::vector<Parameter> parameters, Results results,
               std::shared_ptr<AsyncCalls> async_calls);

  /// The method for Registry::add, which owns it from then on.
  [[nodiscard]] static detail::Binding bind(std::unique_ptr<PythonMethod> method);
  /// The same for Registry::add_subscription, of an async generator.
  [[nodiscard]] static detail::Binding bind_subscription(std::unique_ptr<PythonMethod> method);
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

  /// Calls the function: a new reference, or null with a Python exception set. With the GIL.
  [[nodiscard]] PyObject* call(Arguments& arguments, PyObject* context) const;
  [[nodiscard]] bool takes_context() const noexcept { return takes_context_; }
  /// Whether a parameter of that name is given the call: peers have none of that name, and may not give it.
  [[nodiscard]] bool is_context(std::string_view name) const noexcept;
  [[nodiscard]] Execution execution() const noexcept { return execution_; }
  /// What results, or a stream's items, are held against; null for nothing.
  [[nodiscard]] const Shape* checked() const noexcept { return checked_; }
  /// Decodes, calls, and writes the answer. With the GIL, on any thread.
  void run_off_loop(std::string_view params, const Codec& codec, const Method& method, std::string_view id,
                    std::optional<CallContext>& context, detail::OffLoopReply& reply) const;

 private:
  static void invoke_on_loop(void* stored, Call& call);
  static void invoke_on_pool(void* stored, Call& call);
  static void invoke_on_asyncio(void* stored, Call& call);
  static void invoke_stream(void* stored, Call& call);
  static void invoke_subscription(void* stored, Call& call);
  void run(Call& call) const;
  [[nodiscard]] static std::optional<Error> decode_long(Call& call, Arguments& arguments, std::string_view id);
  bool take_kept(const Call& call, Arguments& arguments) const;

  nanobind::object function_;
  Execution execution_;
  std::vector<Parameter> parameters_;           // in the order in which the function has them
  std::vector<std::size_t> index_of_argument_;  // by parameter: where its argument is
  std::vector<detail::ArgumentType> types_;
  std::vector<const Shape*> shapes_;  // by argument
  detail::Signature signature_;
  Results results_;
  const Shape* checked_;
  bool checks_by_python_ = false;
  Reference keyword_names_;  // a tuple, of those given by name; null for none
  std::size_t positions_ = 0;
  bool takes_context_ = false;
  bool gathers_ = false;       // has rest or others
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

/// Writes a value as `checked` has it; any value, where that is null. False as `encode`.
[[nodiscard]] bool encode_result(Writer& writer, PyObject* value, const Shape* checked, std::string& where);

}  // namespace wirecall::python
