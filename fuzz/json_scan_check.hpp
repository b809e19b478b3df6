// ScanCheck: one differential run of the scanner: SIMD against scalar, both against the automaton, which receives the
// same text in random pieces, and against simdjson's DOM. Used by the fuzzer json_scan and by soak. One owner, one
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "codec/json_scan.hpp"
#include "framing/json_automaton.hpp"
#include "fuzz/json_maker.hpp"
#include "fuzz/simdjson_opinion.hpp"
#include "fuzz/texts.hpp"

namespace fuzz {

class ScanCheck {
 public:
  struct Outcome {
    bool accepted;
    Agreement agreement;  ///< with simdjson
  };
  /// Ends the process on a difference that is not on the list. `seed` chooses the pieces and the depth limit, usual or
  /// small.
  Outcome operator()(std::string_view text, std::uint64_t seed) {
    Random random{seed};
    const bool shallow = random.one_in(4);
    const std::uint32_t depth_max = shallow ? kShallow : kUsual;
    const PaddedText padded{text};
    const wirecall::Scan scan = wirecall::json::scan(padded.view(), depth_max);
    const wirecall::Scan scalar = wirecall::json::scan_scalar(padded.view(), depth_max);
    require(scan.status == scalar.status && scan.offset == scalar.offset, "SIMD and scalar scans differ", text);
    require(scan.status != wirecall::ScanStatus::incomplete || scan.offset == text.size(),
            "an incomplete text was not read to its end", text);
    check_automaton(text, depth_max, scan, random);
    const bool accepted = is_whole(padded.view(), scan);
    if (text.size() > SimdjsonOpinion::kBytesMax) return {accepted, Agreement::agreed};
    const Agreement agreement = (shallow ? shallow_ : usual_).compare(padded.view(), scan);
    require(agreement != Agreement::disagreed, "simdjson disagrees, and no entry of the list says why", text);
    return {accepted, agreement};
  }

 private:
  using Automaton = wirecall::framing::JsonAutomaton;
  static constexpr std::uint32_t kUsual = 256;
  static constexpr std::uint32_t kShallow = 5;

  static void check_automaton(std::string_view text, std::uint32_t depth_max, const wirecall::Scan& scan,
                              Random& random) {
    Automaton automaton;
    automaton.start(depth_max);
    Automaton::Result result{Automaton::Status::more, 0};
    std::size_t at = 0;
    while (at < text.size() && result.status == Automaton::Status::more) {
      const std::size_t piece = 1 + random.below(random.one_in(2) ? 8 : text.size() - at);
      // A separate copy, so that a memory checker sees a read beyond the piece.
      const std::string_view bytes = text.substr(at, piece);
      const auto copy = std::make_unique<char[]>(bytes.size());
      bytes.copy(copy.get(), bytes.size());
      result = automaton.feed({copy.get(), bytes.size()});
      at += result.offset;
    }
    // The automaton knows the end of a top-level scalar only from the byte behind it.
    Automaton::Status expected = Automaton::Status::more;
    bool could_end = false;
    switch (scan.status) {
      case wirecall::ScanStatus::complete: {
        const char first = text[text.find_first_not_of(" \t\r\n")];
        if (first == '{' || first == '[') {
          expected = Automaton::Status::complete;
        } else if (scan.offset == text.size()) {
          could_end = true;
        } else {
          const bool space = wirecall::is_space(text[scan.offset]);
          expected = space ? Automaton::Status::complete : Automaton::Status::malformed;
        }
        break;
      }
      case wirecall::ScanStatus::incomplete: break;
      case wirecall::ScanStatus::malformed: expected = Automaton::Status::malformed; break;
      case wirecall::ScanStatus::too_deep: expected = Automaton::Status::too_deep; break;
    }
    require(result.status == expected && at == scan.offset, "scanner and automaton differ", text);
    if (expected == Automaton::Status::more)
      require(automaton.could_end() == could_end, "scanner and automaton differ on what could be the end", text);
  }

  SimdjsonOpinion usual_{kUsual};
  SimdjsonOpinion shallow_{kShallow};
};

}  // namespace fuzz
