// Integer types of the device code: templates compile without any toolkit header.
#pragma once

namespace mxjit {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

}  // namespace mxjit
