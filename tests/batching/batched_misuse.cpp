// Functions that cannot be batched: this must not compile, and say why. batched_misuse_test.cpp compiles it.
#include "wirecall/batched.hpp"

using namespace wirecall;

// expect: wirecall: a batched function returns a std::vector of its calls' results, or of a wirecall::Stream for each
Stream<std::vector<int>> one_stream_of_all(std::vector<int> numbers);
void returns_one_stream() { static_cast<void>(batched(one_stream_of_all)); }

// expect: wirecall: a batched function that waits returns one Task of a std::vector, and no vector of Tasks
std::vector<Task<int>> many_tasks(std::vector<int> numbers);
void returns_tasks() { static_cast<void>(batched(many_tasks)); }

// expect: wirecall: a batched function takes std::vector<T>, const std::vector<T>& or std::span<const T>
std::vector<Stream<int>> one_number(int number);
void takes_one() { static_cast<void>(batched(one_number)); }
