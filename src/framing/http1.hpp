// Reading HTTP/1.1 (RFC 9112): read_http_head reads a request's head, read_http_response_head a response's, ChunkedBody
// finds the data in a chunked body. All are strict where leniency has let messages be smuggled: lines end in CR LF,
// nothing is folded, no white space stands before a colon, and no two fields contradict each other. What a request is
// answered, and what is made of a response, is not known here.
// Pure: nothing is kept or allocated; the spans of a head lie in the text that was read.
#pragma once

#include <array>
#include <optional>

#include "framing/framing.hpp"

namespace wirecall::framing {

enum class HttpMethod : std::uint8_t {
  get,
  head,
  post,
  options,
  put,
  patch,
  delete_,
  other,    ///< one that HTTP has and that is served nowhere: TRACE, CONNECT
  unknown,  ///< any other
};

/// The fields that the connection asks for. Others are checked and stay in the block (HttpFields::find).
enum class HttpField : std::uint8_t {
  host,
  accept,
  origin,
  expect,
  upgrade,
  location,
  connection,
  authorization,
  content_type,
  last_event_id,
  content_length,
  sec_fetch_site,
  sec_fetch_mode,
  content_encoding,
  transfer_encoding,
  wirecall_timeout_ms,
};
inline constexpr std::size_t kHttpFieldCount = 16;

/// Takes the first element off a list of a field's value, without white space around it.
[[nodiscard]] std::string_view take_element(std::string_view& list) noexcept;

/// Searches a block of fields as HttpFields::find does.
[[nodiscard]] std::optional<std::string_view> find_field(std::string_view block, std::string_view name) noexcept;

/// What the heads of requests and responses have in common.
struct HttpFields {
  HttpFields() noexcept {}  // NOLINT(modernize-use-equals-default): `= default` would let {} clear the spans

  bool version_1_0;            ///< HTTP/1.0, not HTTP/1.1
  bool closes;                 ///< nothing follows the (request's) response: the version or `Connection` says so
  bool keeps_alive;            ///< HTTP/1.0 by which the connection goes on nevertheless, as `Connection` says
  bool upgrades;               ///< `Connection` names upgrade
  bool chunked;                ///< the body is; else it has content_length bytes
  std::size_t content_length;  ///< 0 for none; more than any limit is cut to 2^60
  std::uint32_t present;       ///< bit 1 << HttpField; only fields that are present have a value
  std::array<std::string_view, kHttpFieldCount> values;
  std::string_view block;  ///< all fields as they came, each line with its CR LF

  [[nodiscard]] bool has(HttpField field) const noexcept { return (present >> static_cast<unsigned>(field)) & 1U; }
  /// Without white space around it; empty for a field that is not there.
  [[nodiscard]] std::string_view operator[](HttpField field) const noexcept {
    return has(field) ? values[static_cast<std::size_t>(field)] : std::string_view{};
  }
  /// The value of the first field of that name, known or not, in any case of its letters, without white space around
  /// it; nullopt for none. Searches the block: costs nothing unless it is called.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept {
    return find_field(block, name);
  }
  [[nodiscard]] bool has_body() const noexcept { return chunked || content_length != 0; }
};

struct HttpHead : HttpFields {
  HttpMethod method;
  std::string_view target;  ///< path and query as sent, "*" or empty for OPTIONS and CONNECT, never a whole URI
};

struct HttpResponseHead : HttpFields {
  std::uint16_t status;  ///< from 100 to 599
  /// Its body ends with the connection, since no length is given.
  [[nodiscard]] bool endless() const noexcept { return !chunked && !has(HttpField::content_length); }
};

struct HttpHeadRead {
  std::size_t size = 0;      ///< bytes of the head, and of empty lines before it; 0: it has not come as a whole
  std::uint16_t status = 0;  ///< not 0: refuse the request with this, and close; of a response, only that it is bad
  std::string_view cause;    ///< for people, with a status
};

/// Reads the head with which `input` begins, if it has at most `bytes_max` bytes. `out` is meaningful when it is
/// complete.
[[nodiscard]] HttpHeadRead read_http_head(std::string_view input, std::size_t bytes_max, HttpHead& out) noexcept;
/// The same for a response's head. Whether a body follows depends on what was asked and on the status, too.
[[nodiscard]] HttpHeadRead read_http_response_head(std::string_view input, std::size_t bytes_max,
                                                   HttpResponseHead& out) noexcept;

/// Finds the data in a body of chunks. Says `nothing` for bytes around it, `part` for data, `message` (of size 0) for
/// the body's end, and malformed; extensions and trailers are passed over, as far as they are well formed and have no
/// more than a few thousand bytes together.
class ChunkedBody {
 public:
  /// `input` is not empty.
  [[nodiscard]] Found next(std::string_view input) noexcept;

 private:
  enum class State : std::uint8_t {
    first_digit,
    digits,
    extension,
    size_feed,  // behind the CR of a chunk's first line
    data,
    data_return,  // behind a chunk's data
    data_feed,
    trailer,  // at the start of a trailer field, or of the line that ends the body
    trailer_name,
    trailer_value,
    trailer_feed,
    last_feed,
    done,
  };
  bool step(char c) noexcept;

  std::uint64_t left_ = 0;    // bytes of the chunk that have not come
  std::uint16_t passed_ = 0;  // bytes of extensions and trailers
  std::uint8_t digits_ = 0;   // of the chunk's size
  State state_ = State::first_digit;
};

}  // namespace wirecall::framing
