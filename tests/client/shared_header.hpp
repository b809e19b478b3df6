// What a shared header may declare, and the names by which both sides know it: checked by each compiler that reads
// this.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/context.hpp"
#include "wirecall/function_name.hpp"
#include "wirecall/out.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

namespace shared {

double mean(const std::vector<double>& values);
void divide(int a, int b, int& quotient, wirecall::Out<int> remainder);
int larger(int a, int b);
std::string larger(std::string a, std::string b);
std::string_view first_word(std::string_view text);
wirecall::Task<int> append(wirecall::Context context, std::vector<int>& to, int value, wirecall::Out<std::string> text);
wirecall::Stream<int> count(int n, int& total, wirecall::Out<std::string> last);
std::expected<int, wirecall::Error> positive(int value, wirecall::Out<int> doubled);
int sum(wirecall::Rest<int> numbers);

inline namespace v2 {
int current(int a);
inline namespace fixed {
int newest(int a);
}
struct Meter {
  int read() const noexcept { return 7; }
};
}  // namespace v2
namespace v1 {
int current(int a);
}  // namespace v1

template <class T>
T twice(T value) {
  return value + value;
}

struct Counter {
  int value = 0;
  int add(int amount) { return value += amount; }
  int drain(int amount, int& left) {
    value -= amount;
    left = value;
    return amount;
  }
  static int zero() { return 0; }
  int operator()(int amount) { return amount; }
  struct Inner {
    int get() & { return 1; }
  };
};

template <class T>
struct Box {
  int put(T) { return 1; }
};

}  // namespace shared

template <>
inline constexpr bool wirecall::kInlineNamespace<"shared::v2"> = true;
template <>
inline constexpr bool wirecall::kInlineNamespace<"shared::v2::fixed"> = true;

inline constexpr auto* kLargerText = wirecall::overload<std::string(std::string, std::string)>(shared::larger);
template <>
struct wirecall::MethodName<kLargerText> {
  static constexpr std::string_view value = "shared.larger_text";
};
template <>
struct wirecall::MethodName<&shared::Box<int>::put> {
  static constexpr std::string_view value = "shared.Box.put";
};

int global_function(int a);
int operator_of_cranes(int a);

namespace shared_names {

using wirecall::method_name;

static_assert(method_name<shared::mean>() == "shared.mean");
static_assert(method_name<&shared::mean>() == "shared.mean");
static_assert(method_name<wirecall::overload<int(int, int)>(shared::larger)>() == "shared.larger");
static_assert(method_name<kLargerText>() == "shared.larger_text");
static_assert(method_name<shared::current>() == "shared.current");
static_assert(method_name<shared::v2::current>() == "shared.current");
static_assert(method_name<shared::newest>() == "shared.newest");
static_assert(method_name<shared::v1::current>() == "shared.v1.current");
static_assert(method_name<&shared::Meter::read>() == "shared.Meter.read");
static_assert(method_name<shared::twice<int>>() == "shared.twice");
static_assert(method_name<shared::twice<std::string>>() == "shared.twice");
static_assert(method_name<&shared::Counter::add>() == "shared.Counter.add");
static_assert(method_name<shared::Counter::zero>() == "shared.Counter.zero");
static_assert(method_name<&shared::Counter::Inner::get>() == "shared.Counter.Inner.get");
static_assert(method_name<&shared::Box<int>::put>() == "shared.Box.put");
static_assert(method_name<global_function>() == "global_function");
static_assert(method_name<operator_of_cranes>() == "operator_of_cranes");
static_assert(!wirecall::detail::kHasMethodName<&shared::Counter::operator()>);
static_assert(!wirecall::detail::kHasMethodName<&shared::Box<long>::put>);

}  // namespace shared_names
