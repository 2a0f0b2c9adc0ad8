// A lock taken lane by lane: needs independent thread scheduling.
extern "C" __global__ void spin_lock(int *lock, int *shared_value, int rounds) {
    for (int r = 0; r < rounds; ++r) {
        bool done = false;
        while (!done) {
            if (atomicCAS(lock, 0, 1) == 0) {
                __threadfence();
                *(volatile int *)shared_value = *(volatile int *)shared_value + (int)threadIdx.x + 1;
                __threadfence();
                atomicExch(lock, 0);
                done = true;
            }
        }
    }
}
