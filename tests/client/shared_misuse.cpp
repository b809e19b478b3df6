// Calls of functions of a shared header that must not compile, each below the message that a user is to see, and each
// refused by that one error. shared_misuse_test.cpp compiles this file; without WIRECALL_MISUSE it has no error.
#include <functional>
#include <string>
#include <vector>

#include "tests/client/shared_header.hpp"
#include "wirecall/client.hpp"
#include "wirecall/packing.hpp"
#include "wirecall/server.hpp"

namespace shared {
namespace {
[[maybe_unused]] int hidden(int a) { return a; }
}  // namespace
}  // namespace shared

#ifdef WIRECALL_MISUSE

namespace {

wirecall::Client& client();
wirecall::Server& server();
shared::Counter counter;
shared::Box<long> box;
std::vector<double> values;
int number = 0;
const int constant = 0;
long wide = 0;
std::string text;

// ---- the wrong count ----

// expect: wirecall: the function takes another number of arguments than this call gives
void too_few() { client().call<shared::mean>(); }
// expect: wirecall: the function takes another number of arguments than this call gives
void too_many() { client().call<shared::mean>(values, 2); }
// expect: wirecall: the function takes another number of arguments than this call gives
void object_of_member() { client().call<&shared::Counter::add>(counter, 2); }
// expect: wirecall: the function takes another number of arguments than this call gives
void context() { client().call<shared::append>(wirecall::Context{}, values, 2, text); }

// ---- the wrong type ----

// expect: wirecall: an argument of this call does not convert to the type of its parameter
void text_for_numbers() { client().call<shared::mean>("1.5"); }
// expect: wirecall: an argument of this call does not convert to the type of its parameter
void explicit_conversion() { static_cast<void>(client().request<shared::mean>(3)); }
// expect: wirecall: an argument of this call does not convert to the type of its parameter
void in_a_batch() { static_cast<void>(client().batch().call<&shared::Counter::add>("1")); }
// expect: wirecall: an argument of this call does not convert to the type of its parameter
void in_a_notification() { client().notify<&shared::Counter::add>("12"); }

// ---- what cannot come back ----

// expect: wirecall: a parameter taken by non-const reference or as Out comes back, so its argument is a variable
void temporary() { client().call<shared::divide>(7, 2, 0, number); }
// expect: wirecall: a parameter taken by non-const reference or as Out comes back, so its argument is a variable
void temporary_for_out() { client().call<shared::divide>(7, 2, number, 0); }
// expect: wirecall: a parameter taken by non-const reference or as Out comes back, so its argument is a variable
void constant_variable() { client().call<shared::divide>(7, 2, constant, number); }
// expect: wirecall: a parameter taken by non-const reference or as Out comes back, so its argument is a variable
void another_type() { client().call<shared::divide>(7, 2, number, wide); }
// expect: wirecall: a notification has no answer, so nothing can come back into a variable
void notification() { client().notify<shared::divide>(7, 2, number, number); }
// expect: wirecall: a notification has no answer, so nothing can come back into a variable
void notification_by_name() { client().notify("divide", 7, 2, std::ref(number)); }
// expect: wirecall: several providers answer, so nothing can come back into one variable
void several() { static_cast<void>(client().call_all<int>("divide", 7, 2, std::ref(number))); }
// expect: wirecall: nothing can come back into a const variable; give its value
void constant_reference() { client().call("divide", 7, 2, std::cref(number)); }
// expect: wirecall: a subscription is answered before its function has run, so no parameter can come back
void subscription() {
  server().subscription({"a", "b", "c"}, [](int& n) -> wirecall::Stream<int> { co_yield n; });
}

// ---- what is not packed ----

// expect: wirecall: a parameter that comes back is not packed; return a struct
void packed_reference() { static_cast<void>(wirecall::packing<shared::divide>()); }
// expect: wirecall: the items of a stream are not packed
void packed_items() {
  static_cast<void>(wirecall::packing([](int n) -> wirecall::Stream<int> { co_yield n; }));
}
// expect: wirecall: a Packed value, or a protobuf message, has a form of its own and is not packed again
void packed_twice() {
  static_cast<void>(wirecall::packing([](wirecall::Packed<int> packed) { return packed.value; }));
}
// expect: wirecall: Rest takes any number of values, which no layout says; take a vector
void packed_rest() {
  static_cast<void>(wirecall::packing([](wirecall::Rest<int> all) { return all.size(); }));
}

// expect: wirecall: Out is itself a reference, and is taken by value
void out_by_reference() {
  server().method("x", [](int, const wirecall::Out<int>& out) { out = 1; });
}

// ---- no name ----

// expect: wirecall: this function has no name that another program can know
void anonymous_namespace() { client().call<shared::hidden>(1); }
// expect: wirecall: this function has no name that another program can know
void local_class() {
  struct Local {
    int get() { return 1; }
  };
  client().call<&Local::get>();
}
// expect: wirecall: this function has no name that another program can know
void an_operator() { client().provide<&shared::Counter::operator()>(counter); }
// expect: wirecall: this function has no name that another program can know
void class_template() { server().method<&shared::Box<long>::put>(box); }
// expect: wirecall: this is no function or member function; a lambda, or another object, has no name
void lambda() {
  client().call<[](int) {}>(1);
}
// expect: wirecall: this is no function or member function; a lambda, or another object, has no name
void served_lambda() {
  server().method<[](int a) { return a; }>();
}
// expect: wirecall: this is no function or member function; a lambda, or another object, has no name
void no_function() { client().call<42>(1); }

// ---- the rest ----

// expect: wirecall: a member function is served together with its object
void no_object() { server().method<&shared::Counter::add>(); }
// expect: wirecall: a member function is provided together with its object
void no_object_to_provide() { client().provide<&shared::Counter::add>(); }
// expect: wirecall: this function returns no Stream; call it by `call`
void no_stream() { static_cast<void>(client().stream<shared::mean>(values)); }
// expect: wirecall: the function's result is another type than the batch's
void another_result() { client().batch_of<int>().call<shared::mean>(values); }

}  // namespace

#endif
