// Cooperative groups: tiles of 8, binary and labelled partitions, reductions and scans over them.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void cooperative_tiles(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    auto warp = cg::tiled_partition<32>(block);
    out[i] = cg::reduce(tile, v, cg::plus<int>());
    out[n + i] = cg::inclusive_scan(tile, v);
    out[2 * n + i] = tile.shfl(v, v & 7) * 2 + tile.any(v > 900);
    auto half = cg::binary_partition(warp, v & 1);
    out[3 * n + i] = v & 1 ? half.thread_rank() + 100 * half.size() : -1;
    auto same = cg::labeled_partition(warp, v & 3);
    out[4 * n + i] = cg::reduce(same, v, cg::greater<int>()) + 10000 * same.size();
    block.sync();
    out[5 * n + i] = block.thread_rank() + 1000 * block.group_index().x;
}
