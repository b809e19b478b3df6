// A PROXY header of any bytes, whole and in pieces: what is read does not depend on how they are cut, and what has
// been read is what a plain reading of haproxy's doc/proxy-protocol.txt gives. The first byte chooses how the rest is
// cut up.
#include "framing/proxy_protocol.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <string>
#include <vector>

#include "fuzz/texts.hpp"

namespace {

using wirecall::framing::ProxiedClient;
using wirecall::framing::ProxyHeader;
using State = ProxyHeader::State;
using Family = ProxiedClient::Family;

struct Read {
  State state = State::incomplete;
  std::size_t taken = 0;
  ProxiedClient client;

  friend bool operator==(const Read&, const Read&) = default;
};

Read read(std::string_view bytes, std::size_t piece) {
  ProxyHeader header;
  Read result;
  while (!bytes.empty() && result.state == State::incomplete) {
    const std::vector<char> block(bytes.begin(),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(std::min(piece, bytes.size())));
    std::size_t taken = 0;
    result.state = header.feed({block.data(), block.size()}, taken);
    fuzz::require(taken <= block.size(), "more taken than given", bytes);
    fuzz::require(result.state != State::incomplete || taken == block.size(), "an unfinished header left bytes", bytes);
    result.taken += taken;
    bytes.remove_prefix(taken);
  }
  if (result.state == State::complete) result.client = header.client();
  return result;
}

// Slow and plain, of the whole text: what the line of version 1 says, by way of its fields.
bool read_line(std::string_view bytes, Read& result) {
  const std::size_t end = bytes.substr(0, 107).find("\r\n");
  if (end == std::string_view::npos || !bytes.starts_with("PROXY ")) return false;
  std::vector<std::string> fields;
  const std::string line{bytes.substr(6, end - 6)};
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t space = std::min(line.find(' ', at), line.size());
    fields.push_back(line.substr(at, space - at));
    at = space + 1;
  }
  result.taken = end + 2;
  if (fields[0] == "UNKNOWN") return true;
  if (fields.size() != 5 || (fields[0] != "TCP4" && fields[0] != "TCP6")) return false;
  const bool v4 = fields[0] == "TCP4";
  unsigned char ignored[16];
  for (const std::string& one : fields) {
    if (one.find('\0') != std::string::npos) return false;
  }
  if (::inet_pton(v4 ? AF_INET : AF_INET6, fields[1].c_str(), result.client.address.data()) != 1) return false;
  if (::inet_pton(v4 ? AF_INET : AF_INET6, fields[2].c_str(), ignored) != 1) return false;
  for (const std::string& port : {fields[3], fields[4]}) {
    const bool digits =
        !port.empty() && port.size() <= 5 && std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || (port.size() > 1 && port[0] == '0') || std::stoi(port) > 65'535) return false;
  }
  result.client.family = v4 ? Family::ipv4 : Family::ipv6;
  result.client.port = static_cast<std::uint16_t>(std::stoi(fields[3]));
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  const Read whole = read(bytes, bytes.size());
  fuzz::require(read(bytes, 1) == whole && read(bytes, 1 + data[0] % 32) == whole, "it depends on the cuts", bytes);
  Read expected{.state = State::complete, .taken = 0, .client = {}};
  if (read_line(bytes, expected)) {
    fuzz::require(whole == expected, "a line is read otherwise", bytes);
  } else if (bytes.starts_with('P')) {
    fuzz::require(whole.state != State::complete, "what is no line is read", bytes);
  }
  return 0;
}
