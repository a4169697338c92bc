/* The loop of a C program: a queue pair connected to itself, one request at a time.
 *
 *   loop write|fill|message ROUNDS
 *
 * `write` makes the request once, `fill` fills it for each post, as who has many buffers does.
 *
 * Prints the nanoseconds that a round took. */
#include <endian.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void need(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void writes(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *mr, char *buf, long rounds)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = 8, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)buf + 4096;
	wr.wr.rdma.rkey = mr->rkey;
	for (long round = 0; round < rounds; round++) {
		wr.wr_id = round;
		wr.send_flags = IBV_SEND_SIGNALED;
		need(!ibv_post_send(qp, &wr, &bad), "post_send");
		while (!ibv_poll_cq(cq, 1, &wc))
			;
		need(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)round, "completion");
	}
}

static void fills(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *mr, char *buf, long rounds)
{
	struct ibv_sge from[2] = {
		{.addr = (uintptr_t)buf, .length = 8, .lkey = mr->lkey},
		{.addr = (uintptr_t)buf + 8, .length = 8, .lkey = mr->lkey},
	};
	struct ibv_sge sge;
	struct ibv_send_wr wr = {0}, *bad;
	struct ibv_wc wc;

	for (long round = 0; round < rounds; round++) {
		sge.addr = from[round & 1].addr;
		sge.length = from[round & 1].length;
		sge.lkey = from[round & 1].lkey;
		wr.wr_id = round;
		wr.next = NULL;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr.rdma.remote_addr = (uintptr_t)buf + 4096;
		wr.wr.rdma.rkey = mr->rkey;
		need(!ibv_post_send(qp, &wr, &bad), "post_send");
		while (!ibv_poll_cq(cq, 1, &wc))
			;
		need(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)round, "completion");
	}
}

static void messages(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *mr, char *buf, long rounds)
{
	struct ibv_sge from = {.addr = (uintptr_t)buf, .length = 8, .lkey = mr->lkey};
	struct ibv_sge to = {.addr = (uintptr_t)buf + 4096, .length = 8, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;
	struct ibv_recv_wr rwr = {.wr_id = 2, .sg_list = &to, .num_sge = 1}, *rbad;
	struct ibv_wc wc;

	for (long round = 0; round < rounds; round++) {
		wr.send_flags = IBV_SEND_SIGNALED;
		need(!ibv_post_recv(qp, &rwr, &rbad), "post_recv");
		need(!ibv_post_send(qp, &wr, &bad), "post_send");
		for (int got = 0; got < 2;) {
			if (!ibv_poll_cq(cq, 1, &wc))
				continue;
			need(wc.status == IBV_WC_SUCCESS && (wc.wr_id == 1 || wc.wr_id == 2), "completion");
			got++;
		}
	}
}

int main(int argc, char **argv)
{
	need(argc == 3, "usage: loop write|fill|message ROUNDS");
	struct ibv_device **list = ibv_get_device_list(NULL);
	need(list && list[0], "no device");
	struct ibv_context *context = ibv_open_device(list[0]);
	need(context != NULL, "open");
	struct ibv_port_attr port;
	need(!ibv_query_port(context, 1, &port), "port");
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	char *buf = aligned_alloc(4096, 8192);
	memset(buf, 0, 8192);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	need(pd && cq && mr, "objects");
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	need(qp != NULL, "create_qp");
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = qp->qp_num;
	attr.min_rnr_timer = 12;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.dlid = port.lid;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.hop_limit = 64;
		need(!ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), "gid");
	}
	need(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	need(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
	long rounds = atol(argv[2]);
	double begin = now();
	if (!strcmp(argv[1], "write"))
		writes(qp, cq, mr, buf, rounds);
	else if (!strcmp(argv[1], "fill"))
		fills(qp, cq, mr, buf, rounds);
	else
		messages(qp, cq, mr, buf, rounds);
	printf("%.1f\n", (now() - begin) / rounds);
	return 0;
}
