// See call.hpp.
#include "cli/call.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <expected>
#include <fmt/core.h>
#include <memory>
#include <stdexcept>
#include <utility>

#include "cli/arguments.hpp"
#include "cli/terminal.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/client.hpp"
#include "wirecall/message.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {

namespace {

std::expected<std::string, std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rb"), &std::fclose};
  std::string content;
  if (file != nullptr) {
    char block[64 * 1024];
    while (const std::size_t bytes = std::fread(block, 1, sizeof block, file.get())) content.append(block, bytes);
    if (std::ferror(file.get()) == 0) return content;
  }
  return std::unexpected(fmt::format("cannot read the file {}: {}", path, std::strerror(errno)));
}

/// Who made an error: this process, where the connection failed or the time ran out, or the other side.
bool is_local(const Error& error) {
  const auto data = Value::parse(error.data());
  if (!data) return false;
  const Value* origin = data->find("origin");
  return origin != nullptr && origin->is_string() && origin->as_string() == "local";
}

int exit_of(const Error& error) {
  if (error.code() == static_cast<int>(ErrorCode::timeout)) return kTimeout;
  if (error.code() == static_cast<int>(ErrorCode::provider_lost) && is_local(error)) return kCannotConnect;
  return kRpcError;
}

std::string line_of(const Error& error) {
  std::string line = fmt::format("{} {}", bold(fmt::format("error {}:", error.code())), printable(error.message()));
  if (!error.data().empty()) line += " " + printable(error.data());
  return line;
}

int print(std::string_view json) {
  std::fwrite(json.data(), 1, json.size(), stdout);
  std::fputc('\n', stdout);
  if (std::fflush(stdout) == 0) return kSuccess;
  complain(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
  return kRpcError;
}

/// The response as a server writes it. The id is that of a client's first call.
std::string response_of(const std::expected<std::string, Error>& result) {
  Buffer text;
  if (result) {
    begin_result(text);
    text.append(*result);
    end_reply(text, "1");
  } else {
    write_error(text, result.error(), "1");
  }
  return std::string{text.view()};
}

}  // namespace

int call(const CallOptions& options) {
  const auto params = params_of(options.words, read_file);
  if (!params) {
    complain(params.error());
    return kUsage;
  }
  ClientOptions client_options;
  if (options.timeout) {
    client_options.call_timeout_ms = static_cast<std::uint32_t>(options.timeout->count());
    client_options.connect_timeout_ms = client_options.call_timeout_ms;
  }
  for (const std::string& url : options.urls) {
    try {
      Client client{url, client_options};
      const auto result = client.call_raw(options.method, *params);
      if (options.raw && (result || !is_local(result.error()))) {
        const int written = print(response_of(result));
        return written != kSuccess || result ? written : exit_of(result.error());
      }
      if (result) return print(*result);
      fmt::print(stderr, "{}\n", line_of(result.error()));
      return exit_of(result.error());
    } catch (const ConnectionError& error) {
      complain(printable(error.what()));
    } catch (const std::invalid_argument& error) {
      complain(printable(error.what()));
      return kUsage;
    }
  }
  return kCannotConnect;
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace wirecall::cli
