// Methods whose results cannot be kept: this must not compile, and say why. cached_misuse_test.cpp compiles it.
#include "wirecall/registry.hpp"

using namespace wirecall;

// expect: wirecall: a cached result is for every caller, so its function cannot take a Context
void takes_context(Registry& registry) {
  registry.method("a", [](const Context&, int n) { return n; }, {.params = {"n"}, .cache = {.entries = 1}});
}

// expect: wirecall: the results of a stream are not cached
void streams(Registry& registry) {
  registry.method("b", [](int n) -> Stream<int> { co_yield n; }, {.params = {"n"}, .cache = {.entries = 1}});
}
