# Other processes that the program starts, in every way that Python has.
# transparency: -- fork
# transparency: -- spawn
# transparency: -- forkserver
# transparency: -- raw
# transparency: -- exit-in-child
import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import traceback

from helpers import facts

if __name__ == "__main__":
    print("imported as", __name__, flush=True)
STATE = [len(sys.argv)]


def work(n):
    return n * n + len(STATE), __name__, facts.function(n), os.path.basename(sys.argv[0]), sys._getframe().f_back.f_code.co_name


def fail(n):
    return [n][
        n + 1
    ]


def talk(connection, n):
    connection.send((n * 2, multiprocessing.current_process().name, [f.f_code.co_name for f, _ in traceback.walk_stack(sys._getframe())][-1]))
    connection.close()


class Worker(multiprocessing.Process):
    def run(self):
        print("in a worker", self.name, len(STATE), flush=True)
        raise LookupError(f"from {self.name}")


def leave(code):
    print("leaving with", code, flush=True)
    sys.exit(code)


def main(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        print(pool.map(work, range(3)))
        try:
            pool.apply(fail, (1,))
        except IndexError as error:
            print(error.__cause__)
    ours, theirs = context.Pipe()
    process = context.Process(target=talk, args=(theirs, 4), name="talker")
    process.start()
    print(ours.recv(), process.join(), process.exitcode)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        print(executor.submit(work, 5).result())
        try:
            executor.submit(fail, 2).result()
        except IndexError as error:
            traceback.print_exception(type(error), error, error.__traceback__, file=sys.stdout)
    for target, args in ((fail, (1,)), (leave, (7,)), (leave, ("text",)), (os._exit, (3,))):
        process = context.Process(target=target, args=args, name="ending")
        process.start()
        process.join()
        print(target.__name__, process.exitcode, flush=True)
    if method == "fork":
        worker = Worker(name="subclass")
        worker.start()
        worker.join()
        print("worker", worker.exitcode)


def raw():
    sys.stdout.flush()
    for ending in ("return", "raise", "exit", "_exit"):
        child = os.fork()
        if child == 0:
            print("child", len(STATE), sys.argv[1:], ending, flush=True)
            STATE.append(1)
            if ending == "_exit":
                os._exit(5)
            if ending == "exit":
                sys.exit(6)
            if ending == "raise":
                raise KeyError(ending)
            return
        _, status = os.waitpid(child, 0)
        print("parent", os.waitstatus_to_exitcode(status), len(STATE), flush=True)
    done = subprocess.run([sys.executable, "-c", "import sys; print('sub', sys.argv, len(sys.path)); sys.exit(2)", "a"], capture_output=True, text=True)
    print(done.stdout, done.stderr, done.returncode)
    done = subprocess.run([sys.executable, __file__, "none"], capture_output=True, text=True)
    print(done.stdout, done.stderr, done.returncode)
    print(os.system("exit 3") >> 8, os.popen("echo from a shell; pwd").read().count("\n"))
    print(sorted(set(os.environ) ^ set(eval(subprocess.check_output([sys.executable, "-c", "import os; print(list(os.environ))"])))))


def exit_in_child():
    if os.fork() == 0:
        sys.exit("child's words")
    print("child ended with", os.waitstatus_to_exitcode(os.wait()[1]))
    raise SystemExit(9)


if __name__ == "__main__":
    if sys.argv[1] in ("fork", "spawn", "forkserver"):
        main(sys.argv[1])
    elif sys.argv[1] == "raw":
        raw()
    elif sys.argv[1] == "exit-in-child":
        exit_in_child()
    print("end of", sys.argv[1])
