/* What there is beside the worker's own answers. `dovetail top --web` hands the page on, and says here that it knows all clusters. */
export const clusters = false;
