// A stack machine interpreted by each thread: a switch in a loop, a stack in local memory, data-dependent jumps.
extern "C" __global__ void bytecode(const unsigned char *code, const int *input, int *out, int *steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int stack[16], top = 0, pc = 0, count = 0;
    stack[top++] = input[i];
    for (bool running = true; running && count < 500; ++count) {
        int op = code[pc++];
        switch (op) {
            case 0: running = false; break;
            case 1: stack[top++] = (signed char)code[pc++]; break;
            case 2: --top; stack[top - 1] += stack[top]; break;
            case 3: --top; stack[top - 1] *= stack[top]; break;
            case 4: --top; stack[top - 1] -= stack[top]; break;
            case 5: stack[top] = stack[top - 1]; ++top; break;
            case 6: { int t = stack[top - 1]; stack[top - 1] = stack[top - 2]; stack[top - 2] = t; break; }
            case 7: { int v = stack[--top]; int to = (signed char)code[pc++]; if (v) pc += to; break; }
            case 8: stack[top - 1] = stack[top - 1] & 1; break;
            case 9: stack[top - 1] >>= 1; break;
            case 10: pc += 1 + (signed char)code[pc]; break;
            case 11: stack[top] = stack[top - 2]; ++top; break;
            default: stack[top - 1] = ~stack[top - 1];
        }
    }
    out[i] = stack[top - 1]; steps[i] = count;
}
