def check(input, output, answer):
    return output == answer
