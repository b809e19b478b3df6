// See method.hpp. How a handler in C is called: its parameters are found as it asks for them, or, where they are
// declared, checked before by what checks those of C++ functions.
#include "c/method.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

#include "c/call.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/value.hpp"

namespace wirecall::c {

struct CMethod {
  wc_handler handler = nullptr;
  void* user = nullptr;
  void (*free_user)(void*) = nullptr;
  bool declared = false;
  bool all_numbers = false;  // declared, and integers that come with the envelope need no check
  std::vector<detail::ArgumentType> arguments;
  detail::Signature signature{};
};

namespace {

constexpr std::size_t kParamsMax = detail::kParametersMax;

// ---- what is declared ----

// Whether the next value is of that type; null as well where the parameter is optional.
template <class T, bool kOptional>
bool check_value(Reader& reader, void*) {
  if (kOptional && reader.read_null()) return true;
  if constexpr (std::is_same_v<T, Value>) {
    static_cast<void>(reader.skip());
    return true;
  } else if constexpr (std::is_same_v<T, Value::Array> || std::is_same_v<T, Value::Object>) {
    constexpr bool kArray = std::is_same_v<T, Value::Array>;
    if (reader.kind() != (kArray ? ValueKind::array : ValueKind::object))
      return reader.fail(kArray ? "array" : "object");
    static_cast<void>(reader.skip());
    return true;
  } else {
    T value{};
    return decode(reader, value);
  }
}

bool accepts_nothing(Reader&) { return false; }
bool take_element(Reader& reader, void*) {
  static_cast<void>(reader.skip());
  return true;
}
bool take_member(Reader& reader, void*, std::string_view) { return take_element(reader, nullptr); }

template <class T>
detail::ArgumentType argument_of(const TypeInfo& type, bool optional) {
  return {.decode = optional ? &check_value<T, true> : &check_value<T, false>,
          .optional = optional,
          .rest = false,
          .accepts = &accepts_nothing,
          .type = &type};
}
template <class T>
detail::ArgumentType argument_of(bool optional) {
  return argument_of<T>(detail::TypeInfoOf<T>::value, optional);
}

detail::ArgumentType argument_of(const wc_param& param) {
  switch (param.type) {
    case WC_JSON: return argument_of<Value>(param.optional);
    case WC_I64: return argument_of<std::int64_t>(param.optional);
    case WC_U64: return argument_of<std::uint64_t>(param.optional);
    case WC_F64: return argument_of<double>(param.optional);
    case WC_BOOL: return argument_of<bool>(param.optional);
    case WC_TEXT: return argument_of<std::string_view>(param.optional);
    case WC_BYTES: return argument_of<std::span<const std::byte>>(param.optional);
    case WC_ARRAY: return argument_of<Value::Array>(detail::TypeInfoOf<std::vector<Value>>::value, param.optional);
    case WC_OBJECT:
      return argument_of<Value::Object>(detail::TypeInfoOf<std::map<std::string, Value>>::value, param.optional);
  }
  throw std::invalid_argument("a parameter has an unknown type");
}

// Of a method whose handler knows its parameters: any.
std::vector<detail::ArgumentType> undeclared() {
  detail::ArgumentType rest = argument_of<Value>(true);
  rest.decode = &take_element;
  rest.rest = true;
  detail::ArgumentType others = argument_of<Value>(true);
  others.named_only = true;
  others.decode_other = &take_member;
  return {rest, others};
}

// ---- calls ----

const CMethod& of(void* stored) noexcept { return *static_cast<const CMethod*>(stored); }

// False, and the call is answered, where the parameters are not those that are declared.
bool check_declared(const CMethod& method, Call& call) {
  const Received& message = call.message();
  if (method.all_numbers && message.integer_count == method.arguments.size() && message.integer_count != 0) {
    std::array<std::uint32_t, kIntegersKept> by_name;
    if (!message.integers_named || detail::order_by_name(message, call.method(), by_name.data())) return true;
  }
  detail::ParamReaders& readers = call.param_readers();
  std::array<void*, kParamsMax> nothing{};
  if (detail::decode_params(call.params(), call.method(), readers, nothing.data())) return true;
  call.invalid_params(*readers.reader);
  return false;
}

// Of a handler that has returned: what it has left to be said.
void finish(wc_call& call) {
  Call& served = *call.call;
  if (call.answered) {
    Detached* const deferred = call.params.extras().deferred.get();
    if (deferred != nullptr && !deferred->has_executor()) deferred->end_without_executor();
    return;
  }
  if (call.params.failed || !call.params.all_asked_for()) return served.error(failure_of(call.params));
  if (Writer* const writer = served.begin_result()) writer->null();
  served.end_result();
}

void invoke(void* stored, Call& call) {
  const CMethod& method = of(stored);
  if (method.declared && !check_declared(method, call)) return;
  const Received& message = call.message();
  const bool integers = message.integer_count != 0;
  wc_call served{call.params(), integers ? &message : nullptr,
                 integers || call.params().empty() ? nullptr : call.param_readers().reader.get(), &call};
  if (method.declared) served.params.allow_more();
  if (call.watchdog_slot() != nullptr) served.scope.emplace(call.watchdog_slot(), call.method(), &call);
  method.handler(&served, method.user);
  if (served.scope) served.scope->close();
  if (!served.answered || served.params.has_extras()) [[unlikely]]
    finish(served);
}

void invoke_blocking(void* stored, Call& call) {
  const CMethod& method = of(stored);
  detail::BlockingPool* const pool = call.blocking_pool();
  if (pool == nullptr || call.executor() == nullptr) return invoke(stored, call);
  if (method.declared && !check_declared(method, call)) return;
  const auto detached = std::make_shared<Detached>(call);
  if (method.declared) detached->call().params.allow_more();
  pool->run([detached, &method]() -> detail::BlockingPool::Job {
    if (detached->context().cancelled()) {  // nobody has waited so long for a thread to be free
      detached->answer([](auto& reply) { reply.error(Error{ErrorCode::cancelled}); });
    } else {
      method.handler(&detached->call(), method.user);
      if (!detached->is_deferred()) wc_result_null(&detached->call());
    }
    return [] {};
  });
}

}  // namespace

// ---- descriptions ----

MethodDescription::MethodDescription(const wc_method* method) {
  if (method == nullptr || method->size < offsetof(wc_method, free_user))
    throw std::invalid_argument("the method has no size: set it to sizeof(wc_method)");
  std::memcpy(&method_, method, std::min(method->size, sizeof method_));
  if (method_.name == nullptr) throw std::invalid_argument("the method has no name");
  if (method_.handler == nullptr) throw std::invalid_argument("the method has no handler");
  if (method_.params == nullptr) method_.param_count = 0;
  if (method_.param_count > kParamsMax) throw std::invalid_argument("a method takes at most 63 parameters");
  name_ = method_.name;
}

// In an array, each is as large as the first says.
wc_param MethodDescription::param(std::size_t index) const {
  const std::size_t size = method_.params->size;
  if (size < offsetof(wc_param, description))
    throw std::invalid_argument("a parameter has no size: set it to sizeof(wc_param)");
  wc_param param{};
  std::memcpy(&param, reinterpret_cast<const char*>(method_.params) + index * size, std::min(size, sizeof param));
  if (param.name == nullptr) throw std::invalid_argument("a parameter has no name");
  return param;
}

std::vector<Param> MethodDescription::params() const {
  std::vector<Param> params;
  for (std::size_t i = 0; i != method_.param_count; ++i) {
    const wc_param described = param(i);
    params.push_back(Param{described.name}.description(std::string{view_of(described.description)}));
  }
  return params;
}

detail::Binding MethodDescription::bind() {
  auto method = std::make_unique<CMethod>();
  method->handler = method_.handler;
  method->user = method_.user;
  method->declared = method_.params != nullptr;
  method->all_numbers = true;
  for (std::size_t i = 0; i != method_.param_count; ++i) {
    const wc_param described = param(i);
    method->arguments.push_back(argument_of(described));
    method->all_numbers &= described.type == WC_I64 || described.type == WC_U64 || described.type == WC_F64;
  }
  if (!method->declared) method->arguments = undeclared();
  method->signature = {.arguments = method->arguments, .result = &detail::TypeInfoOf<Value>::value};
  const detail::Signature* const signature = &method->signature;
  bound_ = method.get();
  return {{method.release(),
           [](void* stored) {
             const auto* const owned = static_cast<CMethod*>(stored);
             if (owned->free_user != nullptr) owned->free_user(owned->user);
             delete owned;
           }},
          method_.blocking ? &invoke_blocking : &invoke,
          signature};
}

void MethodDescription::provided() const noexcept { bound_->free_user = method_.free_user; }

void MethodDescription::added(Method& method) const {
  provided();
  if (method_.summary != nullptr) method.summary(method_.summary);
  if (method_.safe) method.safe();
}

}  // namespace wirecall::c
