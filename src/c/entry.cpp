// See entry.hpp.
#include "c/entry.hpp"

#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

#include "wirecall/error.hpp"

namespace wirecall::c {
namespace {

constexpr std::size_t kTextBytes = 512;

struct LastFailure {
  int status = WC_OK;
  char text[kTextBytes] = "";
};
thread_local constinit LastFailure last_failure;

// The first `size` bytes of a UTF-8 text, or fewer: no character is cut.
std::size_t cut_at_character(std::string_view text, std::size_t size) noexcept {
  if (text.size() <= size) return text.size();
  while (size != 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return size;
}

}  // namespace

int fail(int status, std::string_view why, std::string_view data) noexcept {
  last_failure.status = status;
  std::size_t size = 0;
  for (const std::string_view part : {why, std::string_view{data.empty() ? "" : ": "}, data}) {
    const std::size_t more = cut_at_character(part, kTextBytes - 1 - size);
    if (more != 0) std::memcpy(last_failure.text + size, part.data(), more);
    size += more;
  }
  last_failure.text[size] = '\0';
  return status;
}

int fail(const Error& error) noexcept {
  return fail(error.code() != WC_OK ? error.code() : WC_ERROR_INTERNAL, error.message(), error.data());
}

int fail_null() noexcept { return fail(WC_ERROR_ARGUMENT, "an argument is NULL"); }

int fail_in_flight() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return fail(error);
  } catch (const std::bad_alloc&) {
    return fail(WC_ERROR_MEMORY, "no memory is left");
  } catch (const std::invalid_argument& failure) {
    return fail(WC_ERROR_ARGUMENT, failure.what());
  } catch (const std::length_error& failure) {
    return fail(WC_ERROR_ARGUMENT, failure.what());
  } catch (const std::logic_error& failure) {
    return fail(WC_ERROR_STATE, failure.what());
  } catch (const std::runtime_error& failure) {  // std::system_error is one
    return fail(WC_ERROR_SYSTEM, failure.what());
  } catch (const std::exception& failure) {
    return fail(WC_ERROR_INTERNAL, failure.what());
  } catch (...) {
    return fail(WC_ERROR_INTERNAL, "something that is not a std::exception was thrown");
  }
}

}  // namespace wirecall::c

uint32_t wc_abi_version(void) { return WC_ABI_VERSION; }
const char* wc_version(void) { return WIRECALL_VERSION; }
int wc_last_status(void) { return wirecall::c::last_failure.status; }
const char* wc_last_error(void) { return wirecall::c::last_failure.text; }
