// See xdp_filter.hpp. The program is written as the instructions that the kernel takes: with a dozen of them a compiler
// for BPF, and a library to load what that has made, would be more to install than to read.
#include "transport/xdp_filter.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "transport/xdp_frame.hpp"

namespace wirecall::transport {

using runtime::Descriptor;

static Descriptor bpf(bpf_cmd command, bpf_attr& arguments, const char* what) {
  const long result = ::syscall(SYS_bpf, command, &arguments, sizeof arguments);
  if (result < 0) throw std::system_error{errno, std::generic_category(), what};
  return Descriptor{command == BPF_MAP_UPDATE_ELEM ? -1 : static_cast<int>(result)};
}

template <class T>
static T read_as(const std::uint8_t* bytes) noexcept {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

namespace {

// Instructions, one after the other. Registers: 1 the context that the kernel gives, 2 where the frame begins.
class Program {
 public:
  // Passes the frame on unless so many bytes of it at `offset` are `value`, of those bits that `mask` has.
  void require(int size, std::int16_t offset, std::int32_t value, std::int32_t mask = -1) {
    add(BPF_LDX | BPF_MEM | size, 5, 2, offset, 0);
    if (mask != -1) add(BPF_ALU | BPF_AND | BPF_K, 5, 0, 0, mask);
    pass_if(BPF_JMP32 | BPF_JNE | BPF_K, 5, 0, value);
  }
  void pass_if(int code, int left, int right, std::int32_t value) {
    passes_.push_back(instructions_.size());
    add(code, left, right, 0, value);
  }
  void add(int code, int to, int from, std::int16_t offset, std::int32_t value) {
    instructions_.push_back({.code = static_cast<std::uint8_t>(code),
                             .dst_reg = static_cast<std::uint8_t>(to & 15),
                             .src_reg = static_cast<std::uint8_t>(from & 15),
                             .off = offset,
                             .imm = value});
  }
  // The last two pass the frame on.
  const std::vector<bpf_insn>& finish() {
    for (const std::size_t at : passes_)
      instructions_[at].off = static_cast<std::int16_t>(instructions_.size() - at - 1);
    add(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS);
    add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    return instructions_;
  }

 private:
  std::vector<bpf_insn> instructions_;
  std::vector<std::size_t> passes_;
};

}  // namespace

static std::vector<bpf_insn> program_for(const XdpFilter::For& what, int sockets) {
  constexpr auto kBytes = static_cast<std::int32_t>(kXdpHeadBytes);
  Program program;
  program.add(BPF_LDX | BPF_MEM | BPF_W, 2, 1, offsetof(xdp_md, data), 0);
  program.add(BPF_LDX | BPF_MEM | BPF_W, 3, 1, offsetof(xdp_md, data_end), 0);
  program.add(BPF_ALU64 | BPF_MOV | BPF_X, 4, 2, 0, 0);
  program.add(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, kBytes);
  program.pass_if(BPF_JMP | BPF_JGT | BPF_X, 4, 3, 0);  // a frame that is shorter
  program.require(BPF_W, 0, read_as<std::int32_t>(what.hardware.data()));
  program.require(BPF_H, 4, read_as<std::uint16_t>(what.hardware.data() + 4));
  program.require(BPF_H, 12, htons(0x0800));     // IPv4
  program.require(BPF_B, 14, 0x45);              // without options
  program.require(BPF_H, 20, 0, htons(0x3FFF));  // no fragment
  program.require(BPF_B, 23, IPPROTO_UDP);
  program.require(BPF_W, 30, read_as<std::int32_t>(what.address.data()));
  program.require(BPF_H, 36, htons(what.port));
  program.add(BPF_LDX | BPF_MEM | BPF_W, 2, 1, offsetof(xdp_md, rx_queue_index), 0);
  program.add(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, sockets);
  program.add(0, 0, 0, 0, 0);                                   // the other half of that
  program.add(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS);  // where the map has nothing
  program.add(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map);
  program.add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
  return program.finish();
}

XdpFilter::XdpFilter(int socket, const For& what) {
  bpf_attr arguments{};
  arguments.map_type = BPF_MAP_TYPE_XSKMAP;
  arguments.key_size = sizeof(std::uint32_t);
  arguments.value_size = sizeof(std::uint32_t);
  arguments.max_entries = 1;
  sockets_ = bpf(BPF_MAP_CREATE, arguments, "bpf(BPF_MAP_CREATE)");

  const std::uint32_t queue = 0;
  arguments = {};
  arguments.map_fd = static_cast<std::uint32_t>(sockets_.get());
  arguments.key = reinterpret_cast<std::uintptr_t>(&queue);
  arguments.value = reinterpret_cast<std::uintptr_t>(&socket);
  static_cast<void>(bpf(BPF_MAP_UPDATE_ELEM, arguments, "bpf(BPF_MAP_UPDATE_ELEM)"));

  const std::vector<bpf_insn> instructions = program_for(what, sockets_.get());
  arguments = {};
  arguments.prog_type = BPF_PROG_TYPE_XDP;
  arguments.insns = reinterpret_cast<std::uintptr_t>(instructions.data());
  arguments.insn_cnt = static_cast<std::uint32_t>(instructions.size());
  arguments.license = reinterpret_cast<std::uintptr_t>("MIT");
  program_ = bpf(BPF_PROG_LOAD, arguments, "bpf(BPF_PROG_LOAD)");

  arguments = {};
  arguments.link_create.prog_fd = static_cast<std::uint32_t>(program_.get());
  arguments.link_create.target_ifindex = what.interface;
  arguments.link_create.attach_type = BPF_XDP;
  arguments.link_create.flags = XDP_FLAGS_SKB_MODE;
  link_ = bpf(BPF_LINK_CREATE, arguments, "bpf(BPF_LINK_CREATE)");
}

}  // namespace wirecall::transport
