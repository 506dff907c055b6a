// What the authors' table calls to give the tablets of a query's results back: the one function of
// it that their repository lacks.
#include "virginian.h"

int virg_vm_freeresults(virginian *v, virg_vm *vm) {
    while (vm->head_result) {
        virg_result_node *node = vm->head_result;
        vm->head_result = node->next;
        virg_tablet_remove(v, node->id);
        free(node);
    }
    vm->tail_result = NULL;
    return VIRG_SUCCESS;
}
