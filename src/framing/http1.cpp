// See http1.hpp. A head is read in one pass over its bytes. The values of fields, most of its bytes, go eight at a
// time.
#include "framing/http1.hpp"

#include <algorithm>

#include "framing/token.hpp"

namespace wirecall::framing {
namespace {

// Of a chunk's size; zeros in front count too.
constexpr int kSizeDigitsMax = 16;
// Of a body's extensions and trailers.
constexpr std::uint16_t kPassedBytesMax = 4096;

bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

HttpMethod method_of(std::string_view name) noexcept {
  if (name == "POST") return HttpMethod::post;
  if (name == "GET") return HttpMethod::get;
  if (name == "HEAD") return HttpMethod::head;
  if (name == "OPTIONS") return HttpMethod::options;
  if (name == "PUT") return HttpMethod::put;
  if (name == "PATCH") return HttpMethod::patch;
  if (name == "DELETE") return HttpMethod::delete_;
  return name == "TRACE" || name == "CONNECT" ? HttpMethod::other : HttpMethod::unknown;
}

struct KnownField {
  std::string_view name;
  HttpField field;
  bool repeats;  // may stand there more than once
};

constexpr std::array<KnownField, kHttpFieldCount> kKnownFields{{
    {"host", HttpField::host, false},
    {"accept", HttpField::accept, true},
    {"origin", HttpField::origin, false},
    {"expect", HttpField::expect, false},
    {"upgrade", HttpField::upgrade, true},
    {"location", HttpField::location, true},
    {"connection", HttpField::connection, true},
    {"authorization", HttpField::authorization, false},
    {"content-type", HttpField::content_type, true},
    {"last-event-id", HttpField::last_event_id, true},
    {"content-length", HttpField::content_length, false},
    {"sec-fetch-site", HttpField::sec_fetch_site, false},
    {"sec-fetch-mode", HttpField::sec_fetch_mode, false},
    {"content-encoding", HttpField::content_encoding, true},
    {"transfer-encoding", HttpField::transfer_encoding, false},
    {"wirecall-timeout-ms", HttpField::wirecall_timeout_ms, false},
}};

// By its length and the letter four fifths on, no known name shares a bucket with another.
constexpr std::size_t kBuckets = 64;
constexpr std::size_t bucket_of(std::string_view name) noexcept {
  return (name.size() + static_cast<std::size_t>(name[name.size() * 4 / 5] | 0x20) * 7) % kBuckets;
}
constexpr std::array<std::uint8_t, kBuckets> kBucketFields = [] {
  std::array<std::uint8_t, kBuckets> fields{};
  fields.fill(kHttpFieldCount);
  for (std::size_t i = 0; i < kHttpFieldCount; ++i) {
    std::uint8_t& slot = fields[bucket_of(kKnownFields[i].name)];
    if (slot != kHttpFieldCount) throw "two names share a bucket";  // NOLINT: at compile time only
    slot = static_cast<std::uint8_t>(i);
  }
  return fields;
}();

const KnownField* find_known(std::string_view name) noexcept {
  const std::uint8_t index = kBucketFields[bucket_of(name)];
  if (index == kHttpFieldCount || !same_word(name, kKnownFields[index].name)) return nullptr;
  return &kKnownFields[index];
}

// The first byte from `p` on that is no visible character, blank or byte over 127; `end` if there is none.
const char* skip_field_text(const char* p, const char* end) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  while (end - p >= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    const std::uint64_t deletes = word ^ kOnes * 0x7F;
    const std::uint64_t control = (word - kOnes * 0x20) & ~word & kHighs;
    const std::uint64_t deleted = (deletes - kOnes) & ~deletes & kHighs;
    if ((control | deleted) != 0) break;
    p += 8;
  }
  while (p != end && is_field_text(*p)) ++p;
  return p;
}

// What the heads of requests and responses have in common. Functions that return false have refused, or the bytes end:
// then result_ is as it began.
class FieldsReader {
 protected:
  FieldsReader(std::string_view input, HttpFields& out) noexcept
      : p_(input.data()), begin_(input.data()), end_(input.data() + input.size()), fields_(&out) {
    out.present = 0;
    out.content_length = 0;
    out.chunked = out.upgrades = out.keeps_alive = false;
  }

  // False: refused, as result_ says.
  bool bad(std::string_view cause, std::uint16_t status = 400) noexcept {
    result_ = {0, status, cause};
    return false;
  }

  // `missing` is the cause where there is none.
  bool read_version(std::string_view missing) noexcept {
    constexpr std::string_view kName = "HTTP/";
    constexpr std::size_t kVersionBytes = 8;
    const std::string_view here{p_, std::min(static_cast<std::size_t>(end_ - p_), kVersionBytes)};
    const auto is = [here](std::size_t i, auto fits) { return i >= here.size() || fits(here[i]); };
    if (here.substr(0, kName.size()) != kName.substr(0, here.size()) || !is(5, is_digit) ||
        !is(6, [](char c) { return c == '.'; }) || !is(7, is_digit)) {
      return bad(missing);
    }
    if (here.size() < kVersionBytes) return false;
    p_ += kVersionBytes;
    version_ = here.substr(kName.size());
    fields_->version_1_0 = fields_->closes = version_ == "1.0";
    return true;
  }
  bool check_version() noexcept {
    return version_ == "1.1" || version_ == "1.0" || bad("this is HTTP/1.1 and HTTP/1.0 only", 505);
  }

  bool read_line_end() noexcept {
    if (p_ == end_) return false;
    if (*p_ != '\r') return bad(*p_ == '\n' ? "an LF without CR" : "a byte that cannot stand there");
    if (p_ + 1 == end_) return false;
    if (p_[1] != '\n') return bad("a CR without LF");
    p_ += 2;
    return true;
  }

  // Up to the empty line, and with it.
  bool read_fields() noexcept {
    const char* const begin = p_;
    for (;;) {
      if (p_ == end_) return false;
      if (*p_ == '\r') {
        fields_->block = {begin, p_};
        return read_line_end();
      }
      if (!read_field()) return false;
    }
  }

  bool check_lengths() noexcept {
    if (!fields_->chunked) return true;
    if (fields_->has(HttpField::content_length)) return bad("both Content-Length and Transfer-Encoding");
    return !fields_->version_1_0 || bad("Transfer-Encoding in HTTP/1.0");
  }

  [[nodiscard]] HttpHeadRead complete() noexcept {
    result_.size = static_cast<std::size_t>(p_ - begin_);
    return result_;
  }

 private:
  bool read_field() noexcept {
    const char* const name_at = p_;
    while (p_ != end_ && is_token(*p_)) ++p_;
    if (p_ == end_) return false;
    if (*p_ != ':' || p_ == name_at) {
      return bad(is_blank(*p_) ? "white space before a field's colon, or a folded line"
                               : "a header field without a name and a colon");
    }
    const std::string_view name{name_at, p_};
    const char* const value_at = ++p_;
    p_ = skip_field_text(p_, end_);
    const std::string_view value{value_at, p_};
    if (!read_line_end()) return false;
    const KnownField* const known = find_known(name);
    return known == nullptr || note(*known, value);
  }

  bool note(const KnownField& known, std::string_view padded) noexcept {
    const std::string_view value = trim(padded);
    if (fields_->has(known.field) && !known.repeats) return bad("a header field twice that may stand there once");
    fields_->present |= 1U << static_cast<unsigned>(known.field);
    fields_->values[static_cast<std::size_t>(known.field)] = value;
    if (known.field == HttpField::content_length) return note_length(value);
    if (known.field == HttpField::connection) return note_connection(value);
    if (known.field == HttpField::transfer_encoding) return note_encoding(value, padded);
    return true;
  }

  bool note_length(std::string_view value) noexcept {
    std::size_t length = 0;
    for (const char c : value) {
      if (!is_digit(c)) return bad("a Content-Length that is not decimal digits");
      length = std::min(length * 10 + static_cast<std::size_t>(c - '0'), kLengthMax);
    }
    if (value.empty()) return bad("a Content-Length that is not decimal digits");
    fields_->content_length = length;
    return true;
  }

  bool note_connection(std::string_view value) noexcept {
    while (!value.empty()) {
      const std::string_view option = take_element(value);
      if (same_word(option, "close")) says_close_ = true;
      if (same_word(option, "keep-alive")) fields_->keeps_alive = fields_->version_1_0;
      if (same_word(option, "upgrade")) fields_->upgrades = true;
    }
    // Whatever the order, `close` prevails.
    if (says_close_) fields_->keeps_alive = false;
    fields_->closes = says_close_ || (fields_->version_1_0 && !fields_->keeps_alive);
    return true;
  }

  // Some take a tab for a part of the value, and so see another message than we do.
  bool note_encoding(std::string_view value, std::string_view padded) noexcept {
    if (padded.contains('\t')) return bad("a tab in Transfer-Encoding");
    if (value.ends_with(',')) return bad("a Transfer-Encoding that ends in a comma");
    bool others = false;
    do {
      const std::string_view coding = take_element(value);
      if (coding.empty() || fields_->chunked) return bad("chunked is not the last coding, or is there twice");
      fields_->chunked = same_word(coding, "chunked");
      others = others || !fields_->chunked;
    } while (!value.empty());
    if (!fields_->chunked) return bad("a Transfer-Encoding whose last coding is not chunked");
    return !others || bad("a Transfer-Encoding other than chunked", 501);
  }

 protected:
  const char* p_;
  const char* const begin_;
  const char* const end_;
  HttpHeadRead result_;

 private:
  HttpFields* fields_;
  std::string_view version_;
  bool says_close_ = false;
};

class RequestReader : private FieldsReader {
 public:
  RequestReader(std::string_view input, HttpHead& out) noexcept : FieldsReader(input, out), out_(&out) {}

  HttpHeadRead read() noexcept {
    while (p_ != end_ && *p_ == '\r') {
      if (!read_line_end()) return result_;
    }
    if (!read_request_line() || !read_fields() || !check_lengths() || !check_host()) return result_;
    return complete();
  }

 private:
  bool read_request_line() noexcept {
    const char* start = p_;
    while (p_ != end_ && is_token(*p_)) ++p_;
    if (p_ == end_) return false;
    if (*p_ != ' ' || p_ == start) return bad("the request line does not begin with a method and a space");
    out_->method = method_of({start, p_});
    const bool connects = std::string_view{start, p_} == "CONNECT";
    ++p_;
    if (read_target_and_version(connects)) return true;
    // Another protocol's line may begin with a word and a space as well: "PROXY TCP4 ...".
    if (out_->method == HttpMethod::unknown && result_.status == 400) return bad("this method is not one of HTTP", 501);
    return false;
  }

  bool read_target_and_version(bool connects) noexcept {
    const char* const start = p_;
    while (p_ != end_ && is_target(*p_) && *p_ != '#') ++p_;
    if (p_ == end_) return false;
    if (*p_ != ' ' || p_ == start) return bad("the request's target is not made of visible ASCII and one space");
    out_->target = {start, p_};
    ++p_;
    if (!read_version("the request line does not end in a version of HTTP")) return false;
    if (!read_line_end() || !check_version()) return false;
    if (connects) {
      out_->target = {};
      return true;
    }
    return read_target();
  }

  // A target may be a whole URI; its authority then has to be the Host.
  bool read_target() noexcept {
    std::string_view& target = out_->target;
    authority_ = {};
    if (target[0] == '/') return true;
    if (target == "*") return out_->method == HttpMethod::options || bad("only OPTIONS has the target *");
    constexpr std::string_view kScheme = "http://";
    if (target.size() <= kScheme.size() || !same_word(target.substr(0, kScheme.size()), kScheme)) {
      return bad("the request's target is neither a path nor an http URI");
    }
    target.remove_prefix(kScheme.size());
    const std::size_t path = std::min(target.find_first_of("/?"), target.size());
    authority_ = target.substr(0, path);
    target.remove_prefix(path);
    if (target.empty()) target = "/";
    return target[0] == '/' || bad("the request's target has no path");
  }

  bool check_host() noexcept {
    if (authority_.empty()) return true;  // who may do without Host, the connection knows
    const std::string_view host = (*out_)[HttpField::host];
    if (!std::ranges::equal(authority_, host, {}, &lower, &lower)) {
      return bad("a Host that is not the target's");
    }
    return true;
  }

  HttpHead* out_;
  std::string_view authority_;  // of a target that is a URI
};

class ResponseReader : private FieldsReader {
 public:
  ResponseReader(std::string_view input, HttpResponseHead& out) noexcept : FieldsReader(input, out), out_(&out) {}

  HttpHeadRead read() noexcept {
    if (!read_status_line() || !read_fields() || !check_lengths()) return result_;
    return complete();
  }

 private:
  bool read_status_line() noexcept {
    constexpr std::ptrdiff_t kStatusBytes = 3;
    if (!read_version("it does not begin with a version of HTTP") || !check_version() || p_ == end_) return false;
    if (*p_ != ' ') return bad("a status line without a blank behind the version");
    const char* const start = ++p_;
    while (p_ != end_ && is_digit(*p_) && p_ - start < kStatusBytes) ++p_;
    if (p_ == end_) return false;
    if (p_ - start != kStatusBytes || *start < '1' || *start > '5') return bad("a status that is not from 100 to 599");
    out_->status = static_cast<std::uint16_t>((start[0] - '0') * 100 + (start[1] - '0') * 10 + (start[2] - '0'));
    if (*p_ != ' ') return bad("a status line without a blank behind the status");
    p_ = skip_field_text(p_ + 1, end_);
    return read_line_end();
  }

  HttpResponseHead* out_;
};

template <class Reader, class Head>
HttpHeadRead read_head(std::string_view input, std::size_t bytes_max, Head& out) noexcept {
  const HttpHeadRead result = Reader{input.substr(0, bytes_max), out}.read();
  if (result.size == 0 && result.status == 0 && input.size() > bytes_max) {
    return {0, 431, "the head has more bytes than allowed"};
  }
  return result;
}

}  // namespace

std::string_view take_element(std::string_view& list) noexcept {
  const std::size_t comma = std::min(list.find(','), list.size());
  const std::string_view element = trim(list.substr(0, comma));
  list.remove_prefix(std::min(comma + 1, list.size()));
  return element;
}

std::optional<std::string_view> find_field(std::string_view block, std::string_view name) noexcept {
  while (!block.empty()) {
    const std::string_view line = block.substr(0, block.find("\r\n"));
    block.remove_prefix(std::min(line.size() + 2, block.size()));
    const std::size_t colon = std::min(line.find(':'), line.size());
    if (std::ranges::equal(line.substr(0, colon), name, {}, &lower, &lower))
      return trim(line.substr(std::min(colon + 1, line.size())));
  }
  return std::nullopt;
}

HttpHeadRead read_http_head(std::string_view input, std::size_t bytes_max, HttpHead& out) noexcept {
  return read_head<RequestReader>(input, bytes_max, out);
}

HttpHeadRead read_http_response_head(std::string_view input, std::size_t bytes_max, HttpResponseHead& out) noexcept {
  return read_head<ResponseReader>(input, bytes_max, out);
}

// ---- ChunkedBody ----

Found ChunkedBody::next(std::string_view input) noexcept {
  std::size_t at = 0;
  while (at < input.size() && state_ != State::data) {
    if (!step(input[at])) return {Find::malformed, static_cast<std::uint32_t>(at), 0};
    ++at;
    if (state_ == State::done) return {Find::message, static_cast<std::uint32_t>(at), 0};
  }
  const auto skip = static_cast<std::uint32_t>(at);
  const std::size_t here = input.size() - at;
  if (here == 0) return {Find::nothing, skip, 0};
  const std::size_t size = std::min<std::uint64_t>(here, left_);
  left_ -= size;
  if (left_ == 0) state_ = State::data_return;
  return {Find::part, skip, size};
}

// False when `c` cannot stand there.
bool ChunkedBody::step(char c) noexcept {
  const auto turns = [&](char at, State next) {
    if (c == at) state_ = next;
    return c == at;
  };
  const auto passes = [&](bool fits) { return fits && ++passed_ <= kPassedBytesMax; };
  switch (state_) {
    case State::first_digit:
      left_ = 0;
      digits_ = 0;
      state_ = State::digits;
      if (hex_digit(c) < 0) return false;
      [[fallthrough]];
    case State::digits:
      if (const int digit = hex_digit(c); digit >= 0) {
        left_ = left_ << 4 | static_cast<std::uint64_t>(digit);
        return ++digits_ <= kSizeDigitsMax && left_ <= kLengthMax;
      }
      state_ = State::extension;
      if (c != '\r' && c != ';') return false;
      [[fallthrough]];
    case State::extension: return turns('\r', State::size_feed) || passes(is_field_text(c));
    case State::size_feed: return turns('\n', left_ != 0 ? State::data : State::trailer);
    case State::data_return: return turns('\r', State::data_feed);
    case State::data_feed: return turns('\n', State::first_digit);
    case State::trailer:
      if (turns('\r', State::last_feed)) return true;
      state_ = State::trailer_name;
      return passes(is_token(c));
    case State::trailer_name: return turns(':', State::trailer_value) || passes(is_token(c));
    case State::trailer_value: return turns('\r', State::trailer_feed) || passes(is_field_text(c));
    case State::trailer_feed: return turns('\n', State::trailer);
    case State::last_feed: return turns('\n', State::done);
    case State::data:
    case State::done: break;
  }
  return false;
}

}  // namespace wirecall::framing
