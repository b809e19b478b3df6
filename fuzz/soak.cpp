// The differential executions of json_scan in bulk: texts from a seeded generator, most of them damaged, without
// libFuzzer's bookkeeping. Prints the seed, the counts and, where there is a difference, the text. A difference ends
// it.
//
//   soak [executions] [seed]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz/json_scan_check.hpp"

int main(int argc, char** argv) {
  const std::uint64_t executions = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  constexpr std::size_t kBytesMax = 4096;
  fuzz::JsonMaker maker{seed};
  fuzz::ScanCheck check;
  std::uint64_t bytes = 0;
  std::uint64_t accepted = 0;
  std::array<std::uint64_t, 4> counts{};
  std::string text;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  for (std::uint64_t i = 0; i < executions; ++i) {
    fuzz::Random& random = maker.random();
    // One text in four is the last one, changed once more.
    if (text.empty() || !random.one_in(4)) text = random.one_in(3) ? maker.message() : maker.value();
    if (!random.one_in(4)) maker.damage(text, kBytesMax);
    bytes += text.size();
    const fuzz::ScanCheck::Outcome outcome = check(text, random.next());
    accepted += outcome.accepted ? 1 : 0;
    ++counts[static_cast<std::size_t>(outcome.agreement)];
  }
  const auto count = [&](fuzz::Agreement agreement) {
    return static_cast<unsigned long long>(counts[static_cast<std::size_t>(agreement)]);
  };
  std::printf("%llu executions, %llu bytes of text, %llu texts accepted\n", static_cast<unsigned long long>(executions),
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(accepted));
  std::printf("simdjson agreed %llu times; differed on the list: %llu number_range, %llu empty_innermost; else: 0\n",
              count(fuzz::Agreement::agreed), count(fuzz::Agreement::number_range),
              count(fuzz::Agreement::empty_innermost));
}
