// Reads the JSON envelope in the same pass that validates the text: each member's value is skipped by the scanner and
// its span kept; what the spans mean is decided once the object has ended, so that text which is not JSON anywhere is
// -32700 whatever came before it (docs/wire.md "Messages").
#include "message/envelope.hpp"

#include <bit>

#include "codec/json_scan.hpp"

namespace wirecall {
namespace {

using json::Scanner;

constexpr std::uint32_t kNoMember = 31;  // names that are not ours: ignored

// ---- envelope names: the first eight bytes of a name as a number, found by a perfect hash ----

struct Name {
  std::string_view text;
  Member member;
};
constexpr std::array<Name, kMemberCount> kNames{{{"jsonrpc", Member::jsonrpc},
                                                 {"method", Member::method},
                                                 {"params", Member::params},
                                                 {"id", Member::id},
                                                 {"result", Member::result},
                                                 {"error", Member::error},
                                                 {"timeout_ms", Member::timeout_ms},
                                                 {"to", Member::to},
                                                 {"from", Member::from},
                                                 {"stream", Member::stream},
                                                 {"input", Member::input},
                                                 {"hops", Member::hops},
                                                 {"traceparent", Member::traceparent},
                                                 {"tracestate", Member::tracestate}}};

// "traceparent" and "tracestate" share their first five bytes only, so eight bytes tell all names apart.
constexpr std::uint64_t word_of(std::string_view name) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < name.size() && i < 8; ++i) {
    const unsigned shift = static_cast<unsigned>(std::endian::native == std::endian::little ? 8 * i : 56 - 8 * i);
    word |= std::uint64_t{static_cast<unsigned char>(name[i])} << shift;
  }
  return word;
}

constexpr unsigned kHashBits = 5;
constexpr unsigned hash_of(std::uint64_t word, std::uint64_t factor) {
  return static_cast<unsigned>((word * factor) >> (64 - kHashBits));
}
constexpr std::uint64_t find_factor() {
  for (std::uint64_t factor = 0x9E3779B97F4A7C15;; factor += 0x2545F4914F6CDD1E) {
    std::uint32_t used = 0;
    for (const Name& name : kNames) used |= std::uint32_t{1} << hash_of(word_of(name.text), factor);
    if (std::popcount(used) == static_cast<int>(kMemberCount)) return factor;
  }
}
constexpr std::uint64_t kFactor = find_factor();

struct Slot {
  std::uint64_t word = 0;
  std::uint32_t member = kNoMember;
  std::uint32_t size = 0;
};
constexpr auto kSlots = [] {
  std::array<Slot, 1U << kHashBits> slots{};
  for (const Name& name : kNames) {
    slots[hash_of(word_of(name.text), kFactor)] = {word_of(name.text), static_cast<std::uint32_t>(name.member),
                                                   static_cast<std::uint32_t>(name.text.size())};
  }
  return slots;
}();
constexpr std::size_t kMemberBytesMax = 11;

std::uint64_t load8(const char* p) noexcept {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// `name` may be followed by anything, eight bytes of which are readable.
std::uint32_t identify(const char* name, std::size_t size) noexcept {
  std::uint64_t word = load8(name);
  if (size < 8) {
    const auto unused = static_cast<unsigned>(8 * (8 - size));
    if (size == 0) return kNoMember;
    if constexpr (std::endian::native == std::endian::little) {
      word = word << unused >> unused;
    } else {
      word = word >> unused << unused;
    }
  }
  const Slot& slot = kSlots[hash_of(word, kFactor)];
  if (slot.word != word || slot.size != size) return kNoMember;
  if (size > 8 && std::memcmp(name + 8, kNames[slot.member].text.data() + 8, size - 8) != 0) return kNoMember;
  return slot.member;
}

// Decodes what envelope names and "2.0" can consist of: anything beyond ASCII makes it another string.
std::size_t unescape_ascii(std::string_view escaped, char* out, std::size_t out_bytes) noexcept {
  std::size_t size = 0;
  for (std::size_t i = 0; i < escaped.size(); ++i, ++size) {
    if (size == out_bytes) return out_bytes + 1;
    char c = escaped[i];
    if (c == '\\') {
      c = escaped[++i];
      if (c == 'u') {
        unsigned code = 0;
        for (int digit = 0; digit < 4; ++digit) {
          const char h = escaped[++i];
          code = code * 16 + static_cast<unsigned>(h <= '9' ? h - '0' : (h | 0x20) - 'a' + 10);
        }
        c = code < 0x80 ? static_cast<char>(code) : '\x7F';
      } else if (c != '"' && c != '\\' && c != '/') {
        c = '\x7F';  // a control byte: no name holds one
      }
    }
    out[size] = c;
  }
  return size;
}

std::uint32_t identify_escaped(std::string_view escaped) noexcept {
  char name[kMemberBytesMax + 8] = {};
  const std::size_t size = unescape_ascii(escaped, name, kMemberBytesMax);
  return size > kMemberBytesMax ? kNoMember : identify(name, size);
}

// ---- what the members must be ----

bool is_version(std::string_view value) noexcept {
  if (value == "\"2.0\"") return true;
  if (value.size() < 7 || value.front() != '"' || value.find('\\') == value.npos) return false;
  char version[4];
  return unescape_ascii(value.substr(1, value.size() - 2), version, 3) == 3 && std::memcmp(version, "2.0", 3) == 0;
}

bool is_number(char first) noexcept { return first == '-' || (first >= '0' && first <= '9'); }

// A number >= 0; -0 is one.
bool is_timeout(std::string_view value) noexcept {
  if (!is_number(value.front())) return false;
  if (value.front() != '-') return true;
  for (const char c : value.substr(1)) {
    if (c == 'e' || c == 'E') break;
    if (c >= '1' && c <= '9') return false;
  }
  return true;
}

// What read_object found out about an object's members besides their spans.
struct Seen {
  std::uint32_t present = 0;
  std::uint32_t duplicate = 0;  // names that came twice
  bool wrong = false;           // a member's value cannot be what a request wants there
  bool bad_id = false;          // the id cannot be echoed
};

// Decides what an object with these members is.
[[gnu::always_inline]] inline void classify(Received& out, const Seen& seen) noexcept {
  constexpr std::uint32_t kResponseBits = bit_of(Member::result) | bit_of(Member::error);
  constexpr std::uint32_t kRequestBits = bit_of(Member::jsonrpc) | bit_of(Member::method);
  const std::uint32_t present = seen.present;
  out.present = present;
  out.fault = Fault::none;
  out.batch_size = 0;
  if ((present & (kRequestBits | kResponseBits)) == kRequestBits && seen.duplicate == 0 && !seen.wrong) [[likely]] {
    out.kind = (present & bit_of(Member::id)) != 0 ? MessageKind::request : MessageKind::notification;
    return;
  }
  out.fault = Fault::invalid_request;
  out.kind = MessageKind::invalid;
  if ((present & bit_of(Member::id)) != 0) {
    if (out[Member::id].size() > kIdBytesMax) out.fault = Fault::id_limit;
    if (seen.bad_id || (seen.duplicate & bit_of(Member::id)) != 0)
      out.present &= ~bit_of(Member::id);  // answered as null
  }
  if ((present & bit_of(Member::method)) == 0 && (present & kResponseBits) != 0) {
    out.kind = MessageKind::response;
    const bool one = (present & kResponseBits) != kResponseBits;
    const bool whole = (present & bit_of(Member::jsonrpc)) != 0 && (present & bit_of(Member::id)) != 0;
    if (one && whole && seen.duplicate == 0 && !seen.wrong) out.fault = Fault::none;
  }
}

// ---- the pass over the text ----

// A name with its quote and colon as the number that its first eight bytes make; shorter ones are padded with zeros.
constexpr std::uint64_t kMethodKey = word_of("method\":");
constexpr std::uint64_t kParamsKey = word_of("params\":");
constexpr std::uint64_t kIdKey = word_of("id\":");
constexpr std::uint64_t kResultKey = word_of("result\":");
constexpr std::uint64_t kJsonrpcKey = word_of("jsonrpc\"");
constexpr std::uint64_t kVersion = word_of("\"2.0\"");
constexpr std::uint64_t kUsualStart = word_of("\"jsonrpc");  // "jsonrpc":"2.0", is how nearly all messages begin
constexpr std::uint64_t kUsualVersion = word_of("\":\"2.0\",");
constexpr std::uint64_t kSpacedVersion = word_of("\": \"2.0\"");  // or so, with blanks
constexpr std::uint64_t kFourBytes = word_of("\xFF\xFF\xFF\xFF");
constexpr std::uint64_t kFiveBytes = word_of("\xFF\xFF\xFF\xFF\xFF");

// A member's name, colon and the white space around it, whatever the name; returns where the value begins.
template <class Ops>
[[gnu::noinline]] const char* read_name(Scanner<Ops>& scanner, const char* p, std::uint32_t& member) noexcept {
  if (*p != '"') return scanner.fail(p);
  const char* const name = p + 1;
  bool escaped = false;
  p = scanner.string(name, escaped);
  if (p == nullptr) return nullptr;
  const auto name_bytes = static_cast<std::size_t>(p - 1 - name);
  member = escaped ? identify_escaped({name, name_bytes}) : identify(name, name_bytes);
  p = scanner.skip_space(p);
  if (*p != ':') return scanner.fail(p);
  return scanner.skip_space(p + 1);
}

template <class Ops>
[[gnu::always_inline]] inline const char* read_integers(Scanner<Ops>& scanner, const char* p, Received& out) noexcept {
  out.integers_named = *p == '{';
  if (out.integers_named) {
    return scanner.template short_integers<true>(p, out.integers.data(), out.integer_names.data(), kIntegersKept,
                                                 out.integer_count);
  }
  if (*p != '[') return nullptr;
  return scanner.template short_integers<false>(p, out.integers.data(), out.integer_names.data(), kIntegersKept,
                                                out.integer_count);
}

// The value of a member that was recognised; `p` is behind its name and colon. Returns where the value ends.
template <Member kMember, class Ops>
[[gnu::always_inline]] inline const char* read_value(Scanner<Ops>& scanner, const char* p, Received& out,
                                                     Seen& seen) noexcept {
  seen.duplicate |= seen.present & bit_of(kMember);
  seen.present |= bit_of(kMember);
  if (*p == ' ') ++p;
  const char* value = p;
  bool escaped = false;
  if constexpr (kMember == Member::jsonrpc) {
    if ((load8(value) & kFiveBytes) == kVersion) [[likely]] {
      p = value + 5;
    } else {
      value = scanner.skip_space(value);
      p = scanner.value(value, 1);
      if (p != nullptr && !is_version({value, static_cast<std::size_t>(p - value)})) seen.wrong = true;
    }
  } else if constexpr (kMember == Member::method) {
    if (*value != '"') [[unlikely]]
      value = scanner.skip_space(value);
    if (*value == '"') [[likely]] {
      p = scanner.string(value + 1, escaped);
    } else {
      seen.wrong = true;
      p = scanner.value(value, 1);
    }
    out.method_escaped = escaped;
  } else if constexpr (kMember == Member::id) {
    if (*value <= ' ') [[unlikely]]
      value = scanner.skip_space(value);
    if (*value == '"') {
      p = scanner.string(value + 1, escaped);
    } else if (is_number(*value)) {
      p = scanner.number(value);
    } else {
      if (*value != 'n') seen.wrong = seen.bad_id = true;
      p = scanner.value(value, 1);
    }
    if (p - value > static_cast<std::ptrdiff_t>(kIdBytesMax)) [[unlikely]]
      seen.wrong = seen.bad_id = true;
  } else {
    static_assert(kMember == Member::params);
    p = read_integers(scanner, value, out);
    if (p == nullptr) {
      value = scanner.skip_space(value);
      p = scanner.value(value, 1);
      if (*value != '[' && *value != '{' && *value != 'n') seen.wrong = true;
    }
  }
  out.spans[static_cast<std::size_t>(kMember)] = {value, static_cast<std::size_t>(p - value)};
  return p;
}

// The same for a member that is rare or written unusually: by number, kNoMember being none of ours.
template <class Ops>
[[gnu::noinline]] const char* read_other(Scanner<Ops>& scanner, const char* p, Received& out, Seen& seen) noexcept {
  std::uint32_t member = kNoMember;
  if (load8(p + 1) == kResultKey) {  // which is most of what a client reads
    member = static_cast<std::uint32_t>(Member::result);
    p = scanner.skip_space(p + 9);
  } else {
    p = read_name(scanner, p, member);
    if (p == nullptr) return nullptr;
  }
  switch (member) {
    case static_cast<std::uint32_t>(Member::jsonrpc): return read_value<Member::jsonrpc>(scanner, p, out, seen);
    case static_cast<std::uint32_t>(Member::method): return read_value<Member::method>(scanner, p, out, seen);
    case static_cast<std::uint32_t>(Member::params): return read_value<Member::params>(scanner, p, out, seen);
    case static_cast<std::uint32_t>(Member::id): return read_value<Member::id>(scanner, p, out, seen);
    default: break;
  }
  const char* const value = p;
  p = scanner.value(value, 1);
  if (p == nullptr || member == kNoMember) return p;
  seen.duplicate |= seen.present & (std::uint32_t{1} << member);
  seen.present |= std::uint32_t{1} << member;
  out.spans[member] = {value, static_cast<std::size_t>(p - value)};
  if (member == static_cast<std::uint32_t>(Member::timeout_ms) && !is_timeout(out[Member::timeout_ms]))
    seen.wrong = true;
  return p;
}

// `begin` is at the opening brace. Names written as most peers write them are recognised by one comparison each.
template <class Ops>
[[gnu::always_inline]] inline const char* read_object(Scanner<Ops>& scanner, const char* const begin,
                                                      Received& out) noexcept {
  Seen seen;
  out.integer_count = 0;
  out.params_packed = false;
  out.encoding = Encoding::json;
  const char* p = begin + 1;
  if (load8(p) == kUsualStart && load8(p + 8) == kUsualVersion) [[likely]] {
    seen.present = bit_of(Member::jsonrpc);
    out.spans[static_cast<std::size_t>(Member::jsonrpc)] = {p + 10, 5};
    p += 16;
  } else if (load8(p) == kUsualStart && load8(p + 8) == kSpacedVersion && p[16] == ',') {
    seen.present = bit_of(Member::jsonrpc);
    out.spans[static_cast<std::size_t>(Member::jsonrpc)] = {p + 11, 5};
    p += 17;
    if (*p == ' ') ++p;
  } else {
    p = scanner.skip_space(p);
    if (*p == '}') goto end;
  }
  for (;;) {
    if (*p != '"') [[unlikely]] {
      p = scanner.skip_space(p);
      if (*p != '"') return scanner.fail(p);
    }
    {
      const std::uint64_t word = load8(p + 1);
      if (word == kMethodKey) {
        p = read_value<Member::method>(scanner, p + 9, out, seen);
      } else if (word == kParamsKey) {
        p = read_value<Member::params>(scanner, p + 9, out, seen);
      } else if ((word & kFourBytes) == kIdKey) {
        p = read_value<Member::id>(scanner, p + 5, out, seen);
      } else if (word == kJsonrpcKey && p[9] == ':') {
        p = read_value<Member::jsonrpc>(scanner, p + 10, out, seen);
      } else {
        Seen copy = seen;  // whose address may be taken: `seen` stays in registers
        p = read_other(scanner, p, out, copy);
        seen = copy;
      }
    }
    if (p == nullptr) [[unlikely]]
      return nullptr;
    if (*p != ',') {
      if (*p == '}') break;
      p = scanner.skip_space(p);
      if (*p == '}') break;
      if (*p != ',') return scanner.fail(p);
    }
    ++p;
    if (*p == ' ') ++p;
  }
end:
  out.text = {begin, static_cast<std::size_t>(p + 1 - begin)};
  classify(out, seen);
  return p + 1;
}

// A number, literal or string where a message should be: never a request, so nothing is answered but its kind.
void set_no_request(const char* begin, const char* end, Received& out) noexcept {
  out.present = 0;
  out.encoding = Encoding::json;
  out.batch_size = 0;
  out.text = {begin, static_cast<std::size_t>(end - begin)};
  out.kind = MessageKind::invalid;
  out.fault = Fault::invalid_request;
}

template <class Ops>
[[gnu::noinline]] const char* read_element(Scanner<Ops>& scanner, const char* p, Received& out) noexcept {
  if (*p == '{') return read_object(scanner, p, out);
  const char* const end = scanner.value(p, 0);
  if (end != nullptr) set_no_request(p, end, out);
  return end;
}

template <class Ops>
const char* read_batch(Scanner<Ops>& outer, const Limits& limits, const char* const begin, Received& out,
                       std::span<Received> elements) noexcept {
  std::size_t size = 0;
  Scanner<Ops> scanner{limits.depth - 1};  // one level is open
  const auto give_up = [&]() -> const char* {
    outer.too_deep = scanner.too_deep;
    return outer.fail(scanner.bad);
  };
  const char* p = scanner.skip_space(begin + 1);
  if (*p != ']') {
    for (;;) {
      if (limits.depth == 1 && (*p == '{' || *p == '[')) return outer.fail_deep(p);
      p = size < elements.size() ? read_element(scanner, p, elements[size]) : scanner.value(p, 0);
      if (p == nullptr) return give_up();
      ++size;
      p = scanner.skip_space(p);
      if (*p == ']') break;
      if (*p != ',') return outer.fail(p);
      p = scanner.skip_space(p + 1);
    }
  }
  out.present = 0;
  out.encoding = Encoding::json;
  out.text = {begin, static_cast<std::size_t>(p + 1 - begin)};
  out.batch_size = size;
  out.kind = MessageKind::batch;
  out.fault = Fault::none;
  if (size == 0 || size > limits.batch) {
    out.kind = MessageKind::invalid;
    out.fault = size == 0 ? Fault::invalid_request : Fault::batch_limit;
  }
  return p + 1;
}

template <class Ops>
[[gnu::always_inline]] inline Scan read(std::string_view text, const Limits& limits, bool whole, Received& out,
                                        std::span<Received> elements) noexcept {
  Scanner<Ops> scanner{limits.depth};
  const char* const end = text.data() + text.size();
  const char* const begin = scanner.skip_space(text.data());
  const char* p;
  if (*begin == '{') [[likely]] {
    p = read_object(scanner, begin, out);
  } else if (*begin == '[') {
    p = read_batch(scanner, limits, begin, out, elements);
  } else {
    p = scanner.value(begin, 0);
    if (p != nullptr) {
      set_no_request(begin, p, out);
      // Without the white space behind it, more digits or letters may still come.
      if (!whole && !is_space(*p)) p = scanner.fail(p);
    }
  }
  if (p != nullptr && whole && p != end) [[unlikely]] {
    const char* rest = scanner.skip_space(p);
    if (rest != end) p = scanner.fail(rest);
  }
  if (p != nullptr) [[likely]]
    return {ScanStatus::complete, static_cast<std::size_t>(p - text.data())};
  const auto offset = static_cast<std::size_t>(scanner.bad - text.data());
  if (scanner.too_deep) return {ScanStatus::too_deep, offset};
  return {scanner.bad >= end ? ScanStatus::incomplete : ScanStatus::malformed, offset};
}

}  // namespace

Scan read_message(std::string_view text, const Limits& limits, bool whole, Received& out,
                  std::span<Received> elements) noexcept {
  return read<json::NativeOps>(text, limits, whole, out, elements);
}

Scan message::read_message_scalar(std::string_view text, const Limits& limits, bool whole, Received& out) noexcept {
  return read<json::ScalarOps>(text, limits, whole, out, {});
}

bool BatchElements::next(Received& out) noexcept {
  Scanner<json::NativeOps> scanner{kDepthMax};  // the depth was checked when the batch was read
  at_ = scanner.skip_space(at_);
  if (*at_ == ',') at_ = scanner.skip_space(at_ + 1);
  if (at_ + 1 >= end_) return false;
  at_ = read_element(scanner, at_, out);
  return true;
}

}  // namespace wirecall
