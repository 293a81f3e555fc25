// Small twins of the formats of others.
#pragma once

namespace taper::testing {

inline constexpr char kRmm[] =
    "Thread,Time,Action,Pointer,Size,Stream\n"
    "140202,10:53:52.133592,allocate,0x7f0000001000,1024,default\n"
    "140202,10:53:52.133602,allocate,0x7f0000003000,300,per thread\n"
    "140202,10:53:52.133612,free,0x7f0000001000,1024,0x0\n"
    "140203,10:53:52.133612,allocate failure,(nil),99999999999,0\n"
    "140203,10:53:53:133612,allocate,0x7f0000001000,2048,0x59a5380\n"
    "140202,10:53:54.133612,free,0x7f0000002000,512,0x0\n";

inline constexpr char kStAlloc[] =
    "1 139637976727552 512 0\n"
    "1 139637976731552 1024 5\n"
    "0 139637976727552 512 0\n"
    "1 139637976727552 256 0\n"
    "0 139637976731456 77 5\n";

inline constexpr char kLifetimes[] =
    "id,lower,upper,size\n"
    "b1,0,3,4\n"
    "b2,3,4,4\n"
    "b3,0,9,7\n"
    "b4,3,9,1\n";

}  // namespace taper::testing
