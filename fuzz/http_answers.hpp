// The HTTP that can be checked from outside: the requests that a connection sent, and the responses that it received,
// each parsed by itself in the plainest way. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framing/http1.hpp"
#include "fuzz/texts.hpp"

namespace fuzz {

struct HttpRequest {
  bool is_head = false;
  bool is_call = false;  // a POST to a path of calls, whose body is a message
  bool is_timed = false;
  bool is_whole = false;
  std::string body;
};

struct HttpResponse {
  int status = 0;
  bool closes = false;
  std::string type;
  std::string body;
};

// Takes the body of a request off `rest`; returns whether it was complete.
inline bool take_body(const wirecall::framing::HttpHead& head, std::string_view& rest, std::string& body) {
  using wirecall::framing::Find;
  if (!head.chunked) {
    const std::size_t bytes = std::min(head.content_length, rest.size());
    body = rest.substr(0, bytes);
    rest.remove_prefix(bytes);
    return bytes == head.content_length;
  }
  wirecall::framing::ChunkedBody chunks;
  while (!rest.empty()) {
    const wirecall::framing::Found found = chunks.next(rest);
    if (found.find == Find::malformed) return false;
    body += rest.substr(found.skip, found.size);
    rest.remove_prefix(found.skip + found.size);
    if (found.find == Find::message) return true;
  }
  return false;
}

// Up to the first that is malformed or incomplete.
inline std::vector<HttpRequest> read_requests(std::string_view rest, std::size_t head_bytes_max) {
  std::vector<HttpRequest> requests;
  while (!rest.empty()) {
    wirecall::framing::HttpHead head;
    const auto read = read_http_head(rest, head_bytes_max, head);
    if (read.status != 0 || read.size == 0) break;
    HttpRequest& request = requests.emplace_back();
    using wirecall::framing::HttpField;
    using wirecall::framing::HttpMethod;
    const std::string_view path = head.target.substr(0, head.target.find('?'));
    request.is_head = head.method == HttpMethod::head;
    request.is_call = head.method == HttpMethod::post && (path == "/rpc" || path == "/");
    request.is_timed = head.has(HttpField::wirecall_timeout_ms);
    rest.remove_prefix(read.size);
    request.is_whole = take_body(head, rest, request.body);
    if (!request.is_whole) break;
  }
  return requests;
}

// Parses the responses in `text`; `requests` say which have no body. Interim ones are only counted.
inline std::vector<HttpResponse> read_responses(std::string_view text, const std::vector<HttpRequest>& requests,
                                                std::string_view input, std::size_t& interim) {
  std::vector<HttpResponse> responses;
  while (!text.empty()) {
    const auto line = [&] {
      const std::size_t end = text.find("\r\n");
      require(end != std::string_view::npos, "a line of a response does not end", input);
      const std::string_view taken = text.substr(0, end);
      text.remove_prefix(end + 2);
      for (const char c : taken)
        require(c == '\t' || (c >= 0x20 && c != 0x7F) || static_cast<unsigned char>(c) >= 0x80,
                "a head holds a control character", input);
      return taken;
    };
    HttpResponse response;
    const std::string_view status = line();
    require(status.starts_with("HTTP/1.1 ") && status.size() > 13 && status[12] == ' ', "no status line", input);
    for (const char c : status.substr(9, 3)) {
      require(c >= '0' && c <= '9', "a status is no number", input);
      response.status = 10 * response.status + (c - '0');
    }
    std::size_t bytes = 0;
    int lengths = 0;
    for (std::string_view field = line(); !field.empty(); field = line()) {
      const std::size_t colon = field.find(": ");
      require(colon != std::string_view::npos && colon != 0, "a field has no name", input);
      const std::string_view name = field.substr(0, colon);
      const std::string_view value = field.substr(colon + 2);
      if (name == "Content-Length") {
        ++lengths;
        require(!value.empty() && value.size() < 10, "a length is no number", input);
        for (const char c : value) {
          require(c >= '0' && c <= '9', "a length is no number", input);
          bytes = 10 * bytes + static_cast<std::size_t>(c - '0');
        }
      } else if (name == "Connection") {
        const bool upgrade = value == "Upgrade" && response.status == 426;
        const bool keeps = value == "keep-alive";  // to a request of HTTP/1.0 with keep-alive
        require(value == "close" || keeps || upgrade, "Connection says something else", input);
        response.closes = response.closes || value == "close";
      } else if (name == "Content-Type") {
        response.type = value;
      }
      require(name != "Transfer-Encoding", "no response is chunked here", input);
    }
    if (response.status == 100) {
      require(lengths == 0 && !response.closes, "100 Continue has fields", input);
      ++interim;
      continue;
    }
    const bool has_length = response.status != 204;
    require(lengths == (has_length ? 1 : 0), "a response has not one length", input);
    const std::size_t at = responses.size();
    if (at < requests.size() && requests[at].is_head) bytes = 0;
    require(bytes <= text.size(), "a response is shorter than it says", input);
    response.body = text.substr(0, bytes);
    text.remove_prefix(bytes);
    require(responses.empty() || !responses.back().closes, "something follows a response that closes", input);
    responses.push_back(std::move(response));
  }
  return responses;
}

}  // namespace fuzz
